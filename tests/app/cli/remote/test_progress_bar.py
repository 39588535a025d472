"""Progress is told on every terminal, and where there is none."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from app.cli.remote.train import NARROWEST, follow, words

LEARNING = {"phase": "learning", "algorithm": "dueling_double_dqn", "seed": 1, "trials": 4, "episode_return": -1.234}
EVENTS = [
    *({"state": "running", "progress": i / 100, "eta_seconds": 100 - i, **LEARNING} for i in range(100)),
    {"state": "succeeded", "progress": 1.0},
]


def shown(width: int, terminal: bool) -> str:
    """What is written, without control codes."""
    file = io.StringIO()
    follow(Console(file=file, width=width, force_terminal=terminal), "train", iter(EVENTS), words)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue())


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_terminal_has_a_bar_on_one_line_however_narrow_it_is(width: int) -> None:
    lines = [line for line in re.split(r"[\r\n]", shown(width, terminal=True)) if line]
    assert all(len(line) <= width for line in lines)
    assert all(line.count("━") + line.count("╸") + line.count("╺") >= NARROWEST for line in lines)
    assert "100%" in lines[-1]


def test_a_pipe_has_a_line_now_and_then() -> None:
    lines = shown(80, terminal=False).splitlines()
    assert 10 <= len(lines) <= 12
    assert lines[0].startswith(
        "train   0%  running, about 100 s left, dueling_double_dqn seed 1, training return -1.234"
    )
    assert lines[-1] == "train 100%  succeeded"
