"""The report of a training for people: every figure of either kind, offline, and drawn as image too."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.workers.evaluation.report.sample import interval
from tests.workers.evaluation.report.test_page import NASTY, Seen, texts_of
from tests.workers.evaluation.report.test_plot import pictures
from workers.evaluation.report import agent
from workers.evaluation.report.agent import main, render_plots

VERDICT = {"version": 7, "seed": 4, "promoted": False, "reason": "it is no better"}
ITERATIVE: dict[str, Any] = {
    **VERDICT,
    "algorithm": "ppo",
    "episodes": 4096,
    "return": interval(-0.105),
    "outcomes": [
        {"name": "lateness", "unit": "s", "policies": {"agent": interval(12.0), "pid": interval(31.0)}},
    ],
    "terms": {"sla": 0.0125, "cost": 0.4, "change": 0.1},
    "heuristics": {"threshold": interval(-0.14), "pid": interval(-0.11)},
    "best_heuristic": "pid",
    "advantage": interval(0.005),
    "optimum": {**interval(-0.1), "expected": -0.1, "grid_error": 0.0},
    "gap_to_optimum": 0.05,
    "bracket": [
        {"algorithm": "ppo", "seed": 4, "share": 1.0, "steps": 9000, "score": -0.1, "ended": None, "chosen": True},
        {"algorithm": "dqn", "seed": 4, "share": 0.1, "steps": 900, "score": None, "ended": "last", "chosen": False},
    ],
    "curve": [[0, -0.5], [5000, -0.2], [9000, -0.1]],
    "environment_steps": 9900,
    "config": {"type": "ppo"},
}
WORKFLOW: dict[str, Any] = {
    **VERDICT,
    "algorithm": "portfolio",
    "sequences": 40,
    "return": interval(-6.0, 0.5),
    "terms": {"slowdown": interval(6.0, 0.5)},
    "heuristics": {"sjf": interval(7.0, 0.5), "fcfs": interval(30.0, 4.0)},
    "best_heuristic": "sjf",
    "advantage": interval(1.0, 0.2),
    "incumbent": "the champion at that time",
    "gain": interval(0.5, 0.7),
    "candidates": {"portfolio": 5.5, "scorer": 6.5},
    "curve": [[0, 1.0], [4, 0.9]],
    "mechanism": "easy",
    "pictures": {"schedules": pictures(), "points": [{"name": "ljf", "cost": 9.0, "makespan": 4e4}]},
}


def observe(report: dict[str, Any], workload: str = "resnet18") -> Seen:
    return Seen(render_plots(workload, report).page(report))


@pytest.fixture(scope="module")
def workflow() -> Seen:
    return observe(WORKFLOW, "pool")


def test_a_learner_of_allocations_is_told_in_full() -> None:
    result = observe(ITERATIVE)
    expected = {"Agent 7 of resnet18", "not promoted", "it is no better", "ppo, seed 4; judged on 4,096 episodes."}
    expected |= {"mean return", "−0.1050 [−0.1070, −0.1030]", "over the best heuristic", "+0.0050 [+0.0030, +0.0070]"}
    expected |= {"Impact", "lateness", "12 s", "31 s"}
    expected |= {"gap to the exact optimum", "5.0 %", "sla", "0.0125", "last", "chosen", "9,900"}
    assert expected <= set(result.texts)
    assert len(result.images) == 2
    assert {"agent", "optimum", "threshold", "pid"} <= texts_of(result.images[0])
    assert "One sequence" not in result.texts


def test_the_best_comes_first_whichever_way_the_measure_goes(workflow: Seen) -> None:
    order = [text for text in workflow.texts if text in ("agent", "sjf ", "fcfs", "mean bounded slowdown")]
    assert order[:4] == ["mean bounded slowdown", "agent", "sjf ", "fcfs"]
    bare = observe({**ITERATIVE, "outcomes": []})
    returns = [text for text in bare.texts if text in ("agent", "optimum", "pid ", "threshold")]
    assert returns[:4] == ["optimum", "agent", "pid ", "threshold"]


def test_a_scheduler_is_told_with_its_pictures(workflow: Seen) -> None:
    expected = {"Agent 7 of pool", "portfolio, seed 4; judged on 40 sequences.", "over the best heuristic", "scorer"}
    assert {*expected, "+1.00 [+0.80, +1.20]", "easy", "6.0 [5.5, 6.5]"} <= set(workflow.texts)
    parts = ["Verdict", "Agent vs. baselines", "Candidates", "Learning curve", "One sequence", "Effort and settings"]
    contents = [part for part in parts if part != "One sequence"]
    assert [text for text in workflow.texts if text in parts] == [*contents, *parts]
    assert len(workflow.images) == 2 + 8  # standing, curve; two of ranks, busy, queue, slowdown, cost, two Gantt charts
    captions = [value for name, value in workflow.attributes if name == "alt"][2:]
    assert captions[:2] == ["Mean bounded slowdown, the best first", "Makespan, the shortest first"]
    assert {"fcfs", "gate", "ljf"} <= texts_of(workflow.images[7])


def test_the_page_needs_nothing_from_elsewhere(workflow: Seen) -> None:
    assert not {"script", "link", "iframe", "object", "form"} & set(workflow.tags)
    assert all(value.startswith("data:image/svg+xml;base64,") for name, value in workflow.attributes if name == "src")


def test_words_are_those_of_the_report_that_is_published() -> None:
    drawn = render_plots("pool", {**WORKFLOW, "pictures": None})
    text = Seen(drawn.page({**WORKFLOW, "pictures": None, "version": 8, "promoted": True, "reason": NASTY})).texts
    assert {"Agent 8 of pool", "promoted", NASTY} <= set(text)


def test_what_a_report_lacks_is_left_out() -> None:
    result = observe({"algorithm": "strategy", "seed": 0, "promoted": True, "reason": "it is longest"})
    assert (result.images, "An agent of resnet18" in result.texts, "Candidates" in result.texts) == ([], True, False)
    assert len(observe({**ITERATIVE, "curve": [[0, -0.5]]}).images) == 1


@pytest.mark.parametrize(("suffix", "begins"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!doctype")])
def test_a_file_is_what_its_suffix_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, begins: bytes
) -> None:
    values = {"workload": "resnet18", "version": 9, "report": ITERATIVE}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(values)))
    file = tmp_path / "new" / f"agent.{suffix}"
    assert main(["--", str(file)]) == agent.DONE
    assert file.read_bytes().startswith(begins)
    if suffix == "html":  # links of the service lead nowhere from a file
        assert all(value.startswith("#") for name, value in Seen(file.read_text()).attributes if name == "href")
    if suffix != "png":
        assert "Agent 9 of resnet18" in file.read_text()


def test_what_can_not_be_written_is_an_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {"workload": "resnet18", "version": 9, "report": ITERATIVE}
    (tmp_path / "taken").write_text("")
    for file, result in (("taken/agent.html", "taken"), ("agent.gif", "a plot is one of .html, .svg, .png")):
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(values)))
        assert main([str(tmp_path / file)]) == agent.REFUSED
        assert result in capsys.readouterr().err
