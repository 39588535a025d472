"""``steward demo`` from its start to its picture, and interrupted in the middle: nothing stays behind."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from steward_client.launcher.limits.groups import PREFIX, parents

from tests.servers import clean_environment

BRIEF = ("--no-compare", "--budget", "10000")
TRAINING = ("demo", "--iterations", "8", *BRIEF)


def start(folder: Path, *command: str) -> "subprocess.Popen[str]":
    environment = clean_environment({"COLUMNS": "150", "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"})
    line = [sys.executable, "-m", "app.cli", *command, "--output", str(folder / "out")]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    with start(tmp_path, *TRAINING) as process:
        yield process
        process.kill()


def family(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def control_groups_of(pid: int) -> list[Path]:
    return [folder for parent in parents("cpu") for folder in parent.glob(f"{PREFIX}{pid}-*")]


def read_until(process: "subprocess.Popen[str]", word: str) -> str:
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if word in line:
            return text
    pytest.fail(f"it ended without saying {word!r}:\n{text}")


def all_gone(children: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(children, timeout=60)
    return not alive


@pytest.mark.slow
def test_the_whole_demo(demo: "subprocess.Popen[str]", tmp_path: Path) -> None:
    output = read_until(demo, "Run live")
    children = family(demo)
    output += read_until(demo, "Allocation by iteration")
    assert demo.wait(60) == 0, output
    for word in ("domain model:", "agent:", "a neighbour computes", "the whole demo took"):
        assert word in output
    body = json.loads((tmp_path / "out/demo.json").read_text())
    assert not body["simulated"]
    assert [one["name"] for one in body["allocations"]] == ["steward"]
    assert [len(rows) for rows in body["rows"].values()] == [8]
    assert (tmp_path / "out/demo.png").stat().st_size > 10_000
    assert (tmp_path / "out/demo.html").stat().st_size > 100_000
    assert all_gone(children)
    assert control_groups_of(demo.pid) == []
    assert [path.name for path in tmp_path.glob(f"{PREFIX}*")] == []


@pytest.mark.slow
def test_the_whole_serving_demo(tmp_path: Path) -> None:
    with start(tmp_path, "demo", "inference", "--seconds", "4", *BRIEF) as demo:
        try:
            output = read_until(demo, "a request is a page of")
            children = family(demo)
            output += read_until(demo, "the whole demo took")
            assert demo.wait(60) == 0, output
        finally:
            demo.kill()
    for word in ("digits right", "requests/s", "domain model:", "response quality", "one of its reasons:"):
        assert word in output
    (selection,) = json.loads((tmp_path / "out/inference.json").read_text())
    assert selection["run"] == "Steward"
    assert len(selection["responses"]) > 10
    assert (tmp_path / "out/inference.png").stat().st_size > 10_000
    assert all_gone(children)
    assert control_groups_of(demo.pid) == []


@pytest.mark.slow
def test_an_interrupted_demo_leaves_nothing(demo: "subprocess.Popen[str]", tmp_path: Path) -> None:
    read_until(demo, "each iteration trains")
    children = family(demo)
    assert len(children) >= 3
    demo.send_signal(signal.SIGINT)
    assert demo.wait(60) == 130
    assert all_gone(children)
    assert control_groups_of(demo.pid) == []
    assert [path.name for path in tmp_path.glob(f"{PREFIX}*")] == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the children look after their parent by themselves")
def test_a_killed_demo_leaves_no_process(demo: "subprocess.Popen[str]") -> None:
    read_until(demo, "each iteration trains")
    children = family(demo)
    demo.kill()
    demo.wait(10)
    assert all_gone(children)
    time.sleep(0.1)
    for folder in control_groups_of(demo.pid):
        assert (folder / "cgroup.procs").read_text() == ""
        folder.rmdir()
