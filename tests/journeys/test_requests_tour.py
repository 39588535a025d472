"""A log of one's own in three commands (docs/how-to/own-log.md): imported, trained on, evaluated from L0 to L4."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import StewardServer

FOLDER = Path(__file__).parents[2] / "docs/requests"


@pytest.mark.slow
def test_a_log_of_ones_own_is_learned_from_and_judged(
    steward_factory: Callable[..., StewardServer], tmp_path: Path
) -> None:
    server = steward_factory()

    def steward(*arguments: str) -> str:
        command = [sys.executable, "-m", "app.cli", *arguments, "--url", server.url]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    spec, agent, pages = (tmp_path / name for name in ("pages.json", "agent.html", "pages.html"))
    spec.write_text(json.dumps({**json.loads((FOLDER / "pages.json").read_text()), "episode_seconds": 8}))
    output = steward(
        "import", "requests", *map(str, (FOLDER / "requests.csv", FOLDER / "batches.csv")), "--spec", str(spec)
    )
    assert "model 1 of pages" in output
    output = steward("train", "pages", "--algorithm", "ppo", "--seeds", "1", "--budget", "4000", "--plot", str(agent))
    assert "agent 1: ppo" in output
    assert "The variant that is started most often" in agent.read_text()
    body = json.loads(
        steward("evaluate", "pages", "--agent", "newest", "--episodes", "8", "--out", str(pages), "--json")
    )
    levels = {level["level"]: level for level in body["report"]["levels"]}
    assert all(level["available"] for level in levels.values())
    assert "the last 25% of the log 'requests', with the measured batches of all" in body["report"]["held_out"]["note"]
    best = levels["L3"]["best_heuristic"]
    calm, rough = (levels[name]["policies"][best]["outcomes"] for name in ("L3", "L4"))
    assert rough["response_quality"]["mean"] < calm["response_quality"]["mean"]
    for words in ("Requests, one by one", "Mean response quality of the requests of each user"):
        assert words in pages.read_text()
