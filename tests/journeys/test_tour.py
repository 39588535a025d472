"""The tour, block by block as it stands there, against a real service."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import StewardServer

ROOT = Path(__file__).parents[2]
TOUR = (ROOT / "docs/tutorial/tour.md").read_text()
ADDRESS = "http://127.0.0.1:8080"


def blocks(language: str, text: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def said(command: list[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_tour_works_as_it_is_written(
    steward_factory: Callable[..., StewardServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = steward_factory()
    monkeypatch.setenv("STEWARD_URL", server.url)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    shell = [block for block in blocks("sh", TOUR) if "serve" not in block]
    assert len(shell) == 5
    told = said(["bash", "-euc", "\n".join(shell).replace("train resnet18", "train resnet18 --budget 20000")])
    assert "accepted: 12\n" in told
    assert "predicted:\n  iteration_seconds:\n    mean: 14." in told
    assert "agent 1: " in told
    assert re.findall(r"^iteration: (\d+)", told, re.MULTILINE) == ["0", "1", "41"]
    assert "probability: 0.95" in told
    (client,) = blocks("python", TOUR)
    assert "done in" in said([sys.executable, "-c", client.replace(ADDRESS, server.url)])
