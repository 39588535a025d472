"""What local processes have is what was set: cores, memory, CPU time; of children, too."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from steward_client.launcher.actuators.contract import CannotSet, Launch, Range, Unavailable
from steward_client.launcher.actuators.local import LocalProcesses

from tests.clients.launcher.serving import SPINS

SPIN = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-S', '-c', {SPINS!r}]); time.sleep(60)"
HOLD = "held = bytearray(100 << 20); print('held', flush=True); import time; time.sleep(60)"


@contextmanager
def started(name: str, wanted: Range, program: str, first: float, method: str = "auto") -> Iterator[LocalProcesses]:
    try:
        actuator = LocalProcesses({name: wanted}, method)
    except Unavailable as missing:
        pytest.skip(str(missing))
    heard: list[bytes] = []
    try:
        launch = Launch([sys.executable, "-c", program], {name: first}, output=lambda _, piece: heard.append(piece))
        actuator.start(launch)
        until = time.monotonic() + 30
        while program == HOLD and not heard and actuator.wait(0) is None and time.monotonic() < until:
            time.sleep(0.02)
        yield actuator
    finally:
        actuator.close()


def family() -> list[psutil.Process]:
    """The command's processes, the guard's left out."""
    guards = [one for one in psutil.Process().children() if "launcher.limits.guard" in " ".join(one.cmdline())]
    assert len(guards) == 1, f"another test left a command: {guards}"
    return guards[0].children(recursive=True)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_affinity_gives_whole_cores_to_all_that_was_started() -> None:
    with started("cpu", Range(100, 200, 100), SPIN, 100, "affinity") as actuator:
        until = time.monotonic() + 30
        while len(family()) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        assert actuator.apply({"cpu": 190.0}) == {"cpu": 200.0}
        assert actuator.apply({"cpu": 100.0}) == {"cpu": 100.0}
        while {len(one.cpu_affinity()) for one in family()} != {1} and time.monotonic() < until:
            time.sleep(0.02)
        assert [len(one.cpu_affinity()) for one in family()] == [1, 1]


def test_affinity_that_is_too_coarse_is_refused() -> None:
    with pytest.raises(CannotSet, match="multiples of 100 %"):
        LocalProcesses({"cpu": Range(50, 100, 50)}, "affinity")


def test_more_cores_than_there_are_are_refused() -> None:
    with pytest.raises(CannotSet, match="is accepted"):
        LocalProcesses({"cpu": Range(100, 1e6, 100)})


def test_memory_in_use_is_not_taken_away() -> None:
    with started("memory", Range(32, 512, 32), HOLD, 512) as actuator:
        with pytest.raises(CannotSet, match="MiB in use"):
            actuator.apply({"memory": 32.0})
        assert actuator.current() == {"memory": 512.0}
        assert actuator.apply({"memory": 256.0}) == {"memory": 256.0}
        assert actuator.wait(0) is None


def test_memory_beyond_the_limit_ends_the_command() -> None:
    with started("memory", Range(32, 512, 32), HOLD, 64) as actuator:
        assert actuator.wait(60) == 137


@pytest.mark.parametrize("method", ["auto", "duty"])
def test_children_are_limited_with_the_command(method: str) -> None:
    def used() -> float:
        return sum(sum(one.cpu_times()[:2]) for one in family())

    with started("cpu", Range(20, 100, 20), SPIN, 20, method):
        time.sleep(0.5)
        shares = []
        for _ in range(5):  # a guard that waits for a core itself is late, now and then
            began, before = time.monotonic(), used()
            time.sleep(1.0)
            shares.append((used() - before) / (time.monotonic() - began))
        assert statistics.median(shares) <= 0.35, shares
