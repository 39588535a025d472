"""What becomes of a test whose engine can't be had."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from typing import NoReturn

import pytest

PATH = f"{os.environ['PATH']}:/usr/sbin"
"""Where programs of engines are: daemons' aren't on each user's path."""


def left_out(why: str) -> NoReturn:
    """Skip the test; where engines are required (``STEWARD_REQUIRE_ENGINES=1``, as by ``make engines``), fail it."""
    if os.environ.get("STEWARD_REQUIRE_ENGINES") == "1":
        pytest.fail(f"{why}, and engines are required (STEWARD_REQUIRE_ENGINES=1)")
    pytest.skip(why)


def require(programs: Iterable[str]) -> None:
    """Leave the test out unless all these programs are installed."""
    lacking = [name for name in programs if shutil.which(name, path=PATH) is None]
    if lacking:
        left_out(f"{', '.join(lacking)} not installed: .ci/engines installs them")
