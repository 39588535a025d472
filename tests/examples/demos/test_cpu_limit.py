"""The CPU of a child is really limited: measured by the CPU time that it used."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from steward_client.launcher.limits.groups import PREFIX, Group, parents
from steward_demos.processes import Child, CpuLimit, DutyCycleLimit, cpu_limit

pytestmark = pytest.mark.slow  # processes compete for a core

SECONDS = 1.2


def kernel_limit() -> CpuLimit:
    limit = cpu_limit()
    if isinstance(limit, DutyCycleLimit):
        limit.close()
        pytest.skip("no control group may be written here")
    return limit


@pytest.fixture(params=[kernel_limit, DutyCycleLimit], ids=["cgroup", "duty-cycle"])
def limit(request: pytest.FixtureRequest) -> Iterator[CpuLimit]:
    with contextlib.closing(request.param()) as limit:
        yield limit


@contextlib.contextmanager
def spinning() -> Iterator[psutil.Process]:
    with Child("steward_demos.training", ["neighbour"]) as child:
        assert child.read() == {"ready": True}
        assert child.call(spin=True) == {"spin": True}
        yield psutil.Process(child.process.pid)


def share(*processes: psutil.Process, seconds: float = SECONDS) -> float:
    """Percent of one core that the processes use together, measured."""
    before, start = sum(sum(p.cpu_times()[:2]) for p in processes), time.perf_counter()
    time.sleep(seconds)
    used = sum(sum(p.cpu_times()[:2]) for p in processes) - before
    return 100 * float(used) / (time.perf_counter() - start)


@pytest.mark.parametrize("percent", [20.0, 50.0])
def test_a_process_gets_no_more_than_its_share(limit: CpuLimit, percent: float) -> None:
    with spinning() as process:
        limit.add(process.pid)
        limit.set(percent)
        assert percent * 0.6 <= share(process) <= percent * 1.15 + 3


def test_a_changed_limit_holds_at_once(limit: CpuLimit) -> None:
    with spinning() as process:
        limit.add(process.pid)
        limit.set(20)
        low = share(process)
        limit.set(70)
        assert share(process) > 1.5 * low


def test_processes_of_a_group_share_one_limit(limit: CpuLimit) -> None:
    with spinning() as one, spinning() as other:
        for process in (one, other):
            limit.add(process.pid)
        limit.set(40)
        assert share(one, other, seconds=4 * SECONDS) <= 40 * 1.15 + 3  # so long that one late stop is little of it


def test_closing_lifts_the_limit_and_leaves_nothing(limit: CpuLimit) -> None:
    with spinning() as process:
        limit.add(process.pid)
        limit.set(10)
        time.sleep(0.2)
        limit.close()
        assert share(process) > 20
        assert process.status() != psutil.STATUS_STOPPED
    assert not [p for parent in parents("cpu") for p in parent.glob(f"{PREFIX}{os.getpid()}-*")]


def test_an_ended_process_does_not_disturb_the_limit(limit: CpuLimit) -> None:
    with spinning() as process:
        limit.add(process.pid)
        limit.set(20)
    time.sleep(0.1)
    limit.set(30)
    with spinning() as other:
        limit.add(other.pid)
        assert share(other) <= 30 * 1.15 + 3


def test_a_group_that_a_killed_demo_left_is_removed() -> None:
    kernel_limit().close()
    parent = next(p for p in parents("cpu") if os.access(p, os.W_OK))
    ended = 2**22 - 3
    assert not psutil.pid_exists(ended)
    stale = parent / f"{PREFIX}{ended}-0"
    stale.mkdir()
    Group(parent, "cpu").close()
    assert not stale.exists()


def test_the_folders_of_both_versions_are_found(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("3:cpu,cpuacct:/a/b\n2:memory:/x\n0::/c\n")
    for folder in ("cpu,cpuacct/a/b", "memory/x", "c"):
        (tmp_path / folder).mkdir(parents=True)
    first = [p.relative_to(tmp_path).as_posix() for p in parents("cpu", tmp_path, own)]
    assert first == ["cpu,cpuacct/a/b", "cpu,cpuacct/a", "cpu,cpuacct"]
    (tmp_path / "cgroup.controllers").touch()
    second = [p.relative_to(tmp_path).as_posix() for p in parents("cpu", tmp_path, own)]
    assert second[-2:] == ["c", "."]


def test_nothing_is_stopped_and_goes_on_with_something(limit: CpuLimit) -> None:
    with spinning() as process:
        limit.add(process.pid)
        limit.set(0)
        time.sleep(0.2)
        assert share(process) < 1
        limit.set(50)
        assert share(process) > 10
        limit.set(0)
        time.sleep(0.2)
        limit.close()
        assert process.status() != psutil.STATUS_STOPPED
