"""What becomes of a test whose engine can't be had."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from typing import NoReturn

import pytest

PATH = f"{os.environ['PATH']}:/usr/sbin"
"""Where programs of engines are: daemons' aren't on each user's path."""


PACKAGES = {
    "dockerd": "docker.io",
    "mmdebstrap": "mmdebstrap",
    "slurmctld": "slurm-wlm",
    "munged": "munge",
    "ip": "iproute2",
    "nginx": "nginx-light",
}
"""Programs of engines, and Debian's packages that have them."""
FREE_GIB = 20
"""Room that the images take while they are built, in the folder of temporary files."""


def lacking() -> list[str]:
    """Debian's packages that have programs of engines, and aren't installed."""
    return [package for program, package in PACKAGES.items() if shutil.which(program, path=PATH) is None]


def missing_here() -> str:
    """What this machine lacks for the tests of engines, in one line; empty: nothing that is known before they start."""
    lacks = [] if os.geteuid() == 0 else ["root: Docker's daemon and network namespaces need it"]
    if packages := lacking():
        lacks.append(f"apt-get install --no-install-recommends {' '.join(packages)}")
    free = shutil.disk_usage(tempfile.gettempdir()).free / 2**30
    if free < FREE_GIB:
        lacks.append(f"{FREE_GIB} GiB in {tempfile.gettempdir()}, of which {free:.0f} are free")
    return "; ".join(lacks)


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


if __name__ == "__main__":
    if lacks := missing_here():
        sys.exit(f"The tests of engines need {lacks}")
