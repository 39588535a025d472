"""PyTorch Elastic with torchrun itself: workers meet again whenever one comes or goes."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
from steward_client.launcher.actuators.contract import Launch, Range
from steward_client.launcher.actuators.elastic import ElasticTorch
from steward_client.launcher.actuators.kit import OutputRecorder

from tests.servers import wait_until

TORCHRUN = Path(sys.executable).parent / "torchrun"
PROGRAM = """
import os, pathlib, time, torch.distributed as dist
dist.init_process_group("gloo")
size = dist.get_world_size()
line = f"{os.environ['TORCHELASTIC_RUN_ID'][:7]} of {size}\\n"
os.write(1, line.encode())  # one write: print writes the line's end by itself, and two workers share the pipe
while not pathlib.Path(os.environ["DONE"]).exists():
    dist.barrier()
    time.sleep(0.1)
print("done", flush=True)
"""
pytestmark = pytest.mark.slow


def test_workers_come_and_go_and_end_together(tmp_path: Path) -> None:
    heard, done = OutputRecorder(), tmp_path / "done"
    actuator = ElasticTorch({"workers": Range(1, 2)}, torchrun=str(TORCHRUN))
    command = [sys.executable, "-c", PROGRAM]
    try:
        actuator.start(Launch(command, {"workers": 1}, {"DONE": str(done), "OMP_NUM_THREADS": "1"}, output=heard))
        met(heard, [1])
        actuator.apply({"workers": 2})
        met(heard, [1, 2, 2])
        actuator.apply({"workers": 1})
        met(heard, [1, 2, 2, 1])
        assert actuator.wait(0) is None
        done.touch()
        assert actuator.wait(120) == 0
    finally:
        actuator.close()
    assert heard.of("stdout").endswith(b"done\n")


def met(heard: OutputRecorder, sizes: list[int]) -> None:
    """Wait until workers have met in groups of these sizes, and in no others."""
    expected = "".join(f"steward of {size}\n" for size in sizes)
    try:
        wait_until(partial(has_output, heard, expected), seconds=180, what=expected)
    finally:
        print(heard.of("stdout").decode(), heard.of("stderr").decode()[-4_000:])


def has_output(heard: OutputRecorder, expected: str) -> bool:
    assert len(heard.of("stdout")) <= len(expected), heard.of("stderr").decode()[-2_000:]
    return heard.of("stdout").decode() == expected
