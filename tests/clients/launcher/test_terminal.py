"""Lines of the launcher: as wide as a terminal, and a line where it goes elsewhere."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from steward_client.launcher import summary, terminal


def test_a_long_message_stands_in_the_terminal_without_losing_a_word() -> None:
    text = "steward: after iteration 7 (2.66 s): cpu 25 % " + "(heuristic: 2 gpus: finish at 174 s; target 240 s) " * 3
    lines = list(terminal.lines(text, 60))
    assert max(map(len, lines)) <= 60
    assert [line.startswith(terminal.INDENT) for line in lines] == [False] + [True] * (len(lines) - 1)
    assert " ".join(line.strip() for line in lines) == text.strip()
    assert list(terminal.lines(text, None)) == [text]


def test_elsewhere_a_message_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.say("word " * 60)
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(("count", "wide"), [(200, 29), (5, 5)])
def test_a_chart_is_no_wider_than_it_may_be(count: int, wide: int) -> None:
    assert {len(line.strip()) for line in summary.chart("x", [1.0] * count, 29)[1:]} == {wide}


@pytest.mark.parametrize(
    ("status", "parts"),
    [
        (0, ["finished after 3 iterations in 1.5 s, 50 % of the deadline of 3 s", "outcome: met (1.5 s early)"]),
        (137, ["failed after 3 iterations in 1.5 s: killed by SIGKILL"]),
    ],
)
def test_only_what_was_done_has_kept_a_deadline(status: int, parts: list[str]) -> None:
    watched = SimpleNamespace(status=status, began=0.0, ended=1.5, clock=SimpleNamespace(count=3))
    watched.failure = "killed by SIGKILL"
    governed: Any = SimpleNamespace(rows=[], watched=watched, deadline=3.0, cancelled="", stopped=False)
    governed.spec = {"name": "train", "iterations": 3}
    governed.run = SimpleNamespace(id="5f", outcome="met", outcome_reason="1.5 s early")
    governed.page, governed.page_later = "http://steward/ui/runs/5f", ""
    assert summary.lines(governed) == [*parts, "run: http://steward/ui/runs/5f"]
    watched.clock.count, governed.page_later = 4, "steward serve --data data"
    lines = summary.lines(governed)
    assert "after 4 iterations (workload 'train' has 3) in 1.5 s" in lines[0]
    assert lines[-1] == "run: http://steward/ui/runs/5f (later: steward serve --data data)"


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (3.72e-5, "0.0000372"), (0.0123456, "0.0123"), (9.5, "9.50"), (12345.6, "12346")]
)
def test_figures_have_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert summary.digits(value) == text
