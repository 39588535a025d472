"""A run under a pilot, its live table, its summary and its picture; the training is played."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from app.demo import plot, story
from app.demo.api import Steward
from app.demo.drive import Advice, Managed, Row, Run, RunPlan, Static, drive
from app.demo.plan import Measured
from app.demo.show import INDENT, Show, figures, verdict
from app.demo.trainer import Trainer

COURSE = RunPlan(iterations=8, deadline=5.0, disturbed=range(3, 5))


class Played:
    """A training of one CPU-second per iteration, half as fast beside the neighbour."""

    def __init__(self) -> None:
        self.number, self.disturbed, self.switched = 0, False, list[bool]()

    def begin(self, seed: int) -> None:
        self.number = 0

    def disturb(self, *, on: bool) -> None:
        self.disturbed = on
        self.switched.append(on)

    def iteration(self, percent: float) -> Measured:
        seconds = 100 / percent * (2 if self.disturbed else 1)
        self.number += 1
        return Measured(self.number - 1, percent, seconds, 1.0, 0.5, 0.95)


class Api:
    """Plays the service: doubles the allocation after an iteration that took longer than predicted."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []
        self.finished = ""

    def start(self, workload: str) -> dict[str, Any]:
        return {"id": f"run of {workload}", "decision": self._decision(100)}

    def report(self, run: str, iteration: int, report: dict[str, Any]) -> dict[str, Any]:
        assert iteration == len(self.reports)
        self.reports.append(report)
        return self._decision(200 if report["metrics"]["iteration_seconds"] > 1.1 else 100)

    def finish(self, run: str) -> dict[str, Any]:
        self.finished = run
        return {}

    def _decision(self, percent: float) -> dict[str, Any]:
        mean = 100 / percent
        return {
            "allocation": {"cpu": percent},
            "reason": {"code": "on_track", "text": "projected 8 s against a target of 5 s"},
            "source": "agent",
            "predicted": {"iteration_seconds": {"mean": mean, "low": 0.9 * mean, "high": 1.1 * mean, "level": 0.9}},
        }


@pytest.fixture
def api() -> Api:
    return Api()


def managed(api: Api) -> tuple[Run, list[Row], Managed]:
    openings: list[Advice] = []
    rows: list[Row] = []
    controller = Managed(cast("Steward", api), "digits", openings.append)
    run = drive("Steward", controller, cast("Trainer", Played()), COURSE, rows.append)
    assert [o.percent for o in openings] == [100]
    return run, rows, controller


def static(percent: float) -> Run:
    return drive(f"static {percent:g}", Static(percent), cast("Trainer", Played()), COURSE, lambda _: None)


def test_decisions_are_obeyed_and_reported(api: Api) -> None:
    run, rows, controller = managed(api)
    assert [row.measured.percent for row in run.rows] == [100, 100, 100, 100, 200, 100, 100, 100]
    assert [report["allocation"]["cpu"] for report in api.reports] == [row.measured.percent for row in rows]
    controller.finish()
    assert api.finished == "run of digits"


def test_figures_are_sums_of_what_was_measured(api: Api) -> None:
    run, _, _ = managed(api)
    assert run.seconds == pytest.approx(3 + 2 + 1 + 3)
    assert not run.met
    assert run.reserved == pytest.approx(3 + 2 + 2 + 3)
    assert run.used == pytest.approx(8.0)
    assert [row.within for row in run.rows] == [True, True, True, False, False, True, True, True]
    told = dict(figures([run, static(200)]))
    assert told["within the predicted 90 % band"] == ["6 of 8", "–"]
    assert told["… of the undisturbed iterations"] == ["6 of 6", "–"]
    assert told["deadline met"] == ["[red]no[/]", "[green]yes[/]"]


def driven(name: str, seconds: float, percent: float) -> Run:
    """A run of one iteration."""
    measured = Measured(0, percent, seconds, 1.0, 0.5, 0.9)
    row = Row(Advice(percent, ""), measured, seconds, seconds, Advice(percent, ""), disturbed=False)
    return Run(name, (row,), 5.0)


@pytest.mark.parametrize(
    ("seconds", "percent", "said"),
    [
        (6.0, 100, "careful missed the deadline by 1.0 s, for 6.0 CPU-s (+25%)"),
        (3.0, 200, "careful met the deadline by 2.0 s, for 6.0 CPU-s (+25%)"),
        (
            4.8,
            100,
            "careful met the deadline by 0.2 s, for 4.8 CPU-s (+0%): in this run it was as good as deciding, or",
        ),
        (4.0, 100, "(-17%): in this run it was as good as deciding, or better"),
    ],
)
def test_a_run_in_which_a_static_was_as_good_says_so(seconds: float, percent: float, said: str) -> None:
    steward = driven("Steward", 4.8, 100)
    kept, compared = verdict([steward, driven("careful", seconds, percent)])
    assert kept == "Steward met the deadline by 0.2 s, for 4.8 CPU-s"
    assert said in compared
    assert ("as good" in compared) == (seconds < 5 and percent == 100)


def test_a_static_that_alone_met_the_deadline_was_better_whatever_it_cost() -> None:
    late = driven("Steward", 5.5, 100)
    assert "as good as deciding, or better" in verdict([late, driven("largest", 3.0, 200)])[1]
    assert "as good" not in verdict([late, driven("careful", 6.0, 100)])[1]
    assert verdict([late]) == []


def test_the_projection_ends_at_the_wall_clock(api: Api) -> None:
    run, _, _ = managed(api)
    assert run.rows[0].projected == pytest.approx(8.0)
    assert run.rows[-1].projected == run.seconds


def test_the_neighbour_is_there_in_the_middle_and_not_after() -> None:
    played = Played()
    drive("static", Static(100), cast("Trainer", played), COURSE, lambda _: None)
    assert played.switched == [True, False, False]


def test_the_neighbour_goes_when_a_run_breaks_off() -> None:
    played = Played()

    def interrupt(row: Row) -> None:
        if row.disturbed:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive("static", Static(100), cast("Trainer", played), COURSE, interrupt)
    assert played.switched == [True, False]


def test_the_live_table_tells_iteration_cpu_seconds_decision_and_reason(api: Api) -> None:
    text = io.StringIO()
    show = Show(Console(file=text, width=140))
    controller = Managed(cast("Steward", api), "digits", show.head)
    drive("Steward", controller, cast("Trainer", Played()), COURSE, show.row)
    lines = text.getvalue().splitlines()
    assert all(name in lines[0] for name in ("iteration", "cpu %", "seconds", "projected", "decision", "reason"))
    assert "first: 100 %" in lines[1]
    disturbed = next(line for line in lines if line.split()[:1] == ["3*"])
    assert "+100 → 200" in disturbed
    assert "projected 8 s against a target of 5 s" in disturbed


def test_on_80_columns_reasons_stand_below_the_figures_in_whole_lines(api: Api) -> None:
    text = io.StringIO()
    show = Show(Console(file=text, width=80))
    pilot = Managed(cast("Steward", api), "digits", show.head)
    run = drive("Steward", pilot, cast("Trainer", Played()), COURSE, show.row)
    lines = text.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "reason" not in lines[0].split()
    reason = f"{' ' * INDENT}agent: projected 8 s against a target of 5 s"
    assert [line.rstrip() for line in lines].count(reason) == len(run.rows)
    long = replace(run.rows[0], decided=replace(run.rows[0].decided, reason="holding is best because " * 6))
    text.truncate(text.seek(0))
    show.row(long)
    _, *below = text.getvalue().rstrip().splitlines()
    assert len(below) == 3  # of 150 characters
    assert all(len(line.split()) > 4 for line in below[:-1])


def test_the_picture_needs_no_network(api: Api, tmp_path: Path) -> None:
    run, _, _ = managed(api)
    png, html = plot.save([run, static(200), static(100)], tmp_path / "new")
    assert png.read_bytes().startswith(b"\x89PNG")
    text = html.read_text()
    assert "static 200" in text
    assert '<script src="http' not in text


def test_the_figures_are_kept_as_json(api: Api, tmp_path: Path) -> None:
    run, _, _ = managed(api)
    text = io.StringIO()
    demo = story.Demo(story.Options(output=tmp_path), Show(Console(file=text, width=140)))
    demo.conclude([run, static(200)])
    kept = json.loads((tmp_path / "demo.json").read_text())
    assert [entry["run"] for entry in kept] == ["Steward", "static 200"]
    assert len(kept[0]["rows"]) == 8
    assert "wall clock, measured" in text.getvalue()
