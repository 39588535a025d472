"""The README's tour, block by block as it stands there, against a real service."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import StewardServer

ROOT = Path(__file__).parents[2]
ADDRESS = "http://127.0.0.1:8080"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)


def said(command: list[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_tour_works_as_it_is_written(steward_factory: Callable[..., StewardServer]) -> None:
    server = steward_factory()
    shell = [block for block in blocks("sh") if "$STEWARD" in block]
    assert len(shell) == 5
    told = said(["bash", "-euc", "\n".join(shell).replace(ADDRESS, server.url)])
    assert '"accepted":12' in told
    assert told.count('"state": "succeeded"') == 2
    assert '"type": "/problems/' not in told
    (decision,) = [json.loads(line) for line in told.splitlines() if line.startswith('{"run":null')]
    assert decision["iteration"] == 41
    assert json.loads(told.splitlines()[-1])["spec"]["metrics"][0]["probability"] == 0.95
    (client,) = blocks("python")
    assert "done in" in said([sys.executable, "-c", client.replace(ADDRESS, server.url)])
