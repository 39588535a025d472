"""How this kind's loops are compiled."""

from pathlib import Path

from app.kinds.inference import model, quality, transitions
from workers.kinds.compiling import Compiler

OWN = Path(__file__).parent
COMPILER = Compiler(
    OWN,
    *(OWN / f"{name}.py" for name in ("arrivals", "kernels")),
    *(Path(str(module.__file__)) for module in (model, quality, transitions)),
)
kernel, inlined = COMPILER.kernel, COMPILER.inlined
