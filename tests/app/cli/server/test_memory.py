"""What a service's process keeps of large blocks that were freed."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

MEASURE = """
import sys, threading
import psutil
from app.cli.server.serve import tune_malloc
if sys.argv[1] == "tuned":
    tune_malloc()
def uploads():
    for megabytes in (16, 12):
        bytearray(megabytes << 20)
    before.append(psutil.Process().memory_full_info().uss)
before = [psutil.Process().memory_full_info().uss]
thread = threading.Thread(target=uploads)
thread.start()
thread.join()
print(before[1] - before[0])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="how glibc keeps memory")
@pytest.mark.parametrize(("way", "mask"), [("tuned", False), ("plain", True)])
def test_large_blocks_are_given_back_when_they_are_free(way: str, mask: bool) -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE, way], capture_output=True, text=True, check=True)
    assert (int(done.stdout) > 8 << 20) == mask
