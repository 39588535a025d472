"""How long it takes after a fault until all is as before: kept where ``benchmarks.recovery`` asks for it."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KEPT = "STEWARD_RECOVERIES"


@contextmanager
def recovering() -> Iterator[None]:
    """From the end of a fault to when the service does again what it did before."""
    begun = time.monotonic()
    yield
    if selection := os.environ.get(KEPT):
        test = os.environ["PYTEST_CURRENT_TEST"].rpartition("::")[2].partition(" ")[0]
        with Path(selection).open("a") as file:
            file.write(json.dumps({"test": test, "seconds": time.monotonic() - begun}) + "\n")
