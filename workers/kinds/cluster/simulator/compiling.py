"""How this kind's loops are compiled."""

from pathlib import Path

from workers.kinds.compiling import Compiler

OWN = Path(__file__).parent
kernel = Compiler(OWN, *sorted(OWN.glob("*.py"))).kernel
