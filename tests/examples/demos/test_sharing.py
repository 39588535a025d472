"""The cluster demo's players, a run, its figures and its picture; the trainings are played."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from steward_demos import cluster as story
from steward_demos.cluster import figures, recorded, verdict
from steward_demos.cluster_run import (
    JOBS,
    NAME,
    SLICES,
    Choice,
    Events,
    Iteration,
    Job,
    Managed,
    Played,
    Player,
    Progress,
    Ruled,
    Run,
    Trainings,
    equal_share,
    first_come,
)
from steward_demos.service import Steward

FIRST, SECOND, THIRD = JOBS[:3]
SHORT = tuple(job._replace(iterations=3, at=0.02 * number) for number, job in enumerate(JOBS))


class Played4:
    """Plays the trainings: what goes on has done its iteration a moment later, in a second by its own clock."""

    def __init__(self) -> None:
        self.slices: dict[int, int] = {}
        self.begun: list[str] = []
        self.open: list[int] = []

    def begin(self, training: int, size: str, seed: int) -> None:
        assert training == seed
        self.begun.append(size)

    def give(self, training: int, slices: int) -> None:
        self.slices[training] = slices

    def start(self, training: int) -> None:
        assert training not in self.open, "it does one iteration at a time"
        assert self.slices[training] > 0, "it has nothing to do it with"
        self.open.append(training)

    def wait(self, until: float) -> list[Iteration]:
        assert sum(self.slices.get(training, 0) for training in self.open) <= SLICES
        going = [training for training in self.open if self.slices[training]]
        if not going:
            time.sleep(max(0.0, until - time.monotonic()))
        self.open = [training for training in self.open if training not in going]
        return [Iteration(training, 1.0, 0.5) for training in going]


def play(player: Player, jobs: Sequence[Job] = SHORT) -> tuple[Played, Played4]:
    trainings = Played4()
    return Run(cast("Trainings", trainings), player, jobs).play(lambda _: None), trainings


class Scripted:
    """Gives what a script says, one choice after the other, the last one for ever; keeps what it was told."""

    name = "script"

    def __init__(self, *choices: dict[str, int]) -> None:
        self.choices = itertools.chain(choices, itertools.repeat(choices[-1]))
        self.events: list[Events] = []

    def react(self, events: Events) -> Choice:
        self.events.append(events)
        return Choice(next(self.choices))


@pytest.mark.parametrize("rule", [equal_share, first_come])
def test_every_job_comes_to_its_end(rule: Callable[[Sequence[Job]], Mapping[str, int]]) -> None:
    played, trainings = play(Ruled("a rule", rule))
    assert set(played.completion) == set(SHORT)
    assert trainings.begun == [job.size for job in SHORT]
    assert len(played.learnt) == sum(job.iterations for job in SHORT)
    assert played.slices_at[-1][1] == dict.fromkeys((job.name for job in SHORT), 0)


def test_equal_shares_leave_what_is_over_to_the_first() -> None:
    player = Ruled("equal share", equal_share)
    assert player.react(Events(0.0, [FIRST], (), ())).slices == {FIRST.name: 8}
    assert player.react(Events(1.0, [SECOND, THIRD], (), ())).slices == {FIRST.name: 3, SECOND.name: 3, THIRD.name: 2}
    assert player.react(Events(2.0, (), (), [FIRST])).slices == {SECOND.name: 4, THIRD.name: 4}


def test_first_come_first_served_lets_nobody_pass() -> None:
    player, wide = Ruled("FIFO", first_come), SECOND._replace(gpus=5)
    assert player.react(Events(0.0, [FIRST, wide, THIRD], (), ())).slices == {FIRST.name: 4}
    assert player.react(Events(1.0, (), (), [FIRST])).slices == {wide.name: 5}
    assert player.react(Events(1.0, (), (), [wide])).slices == {THIRD.name: 4}


def test_seconds_are_told_only_of_iterations_in_which_nothing_changed() -> None:
    script = Scripted({FIRST.name: 4}, {FIRST.name: 4}, {FIRST.name: 8}, {FIRST.name: 8})
    job = FIRST._replace(iterations=4)
    play(script, [job])
    entries = [one for events in script.events for one in events.progressed]
    assert [(one.iteration, one.slices, one.seconds) for one in entries] == [
        (1, 4, None),  # began when it was given something
        (2, 4, 1.0),
        (3, 8, None),
        (4, 8, 1.0),
    ]
    assert [list(events.ended) for events in script.events][-1] == [job]


def test_a_job_without_slices_stops_and_goes_on_later() -> None:
    script = Scripted({FIRST.name: 8}, {SECOND.name: 8}, {SECOND.name: 8}, {FIRST.name: 4, SECOND.name: 4})
    jobs = [FIRST._replace(iterations=3, at=0.0), SECOND._replace(iterations=4, at=0.0)]
    played, _ = play(script, jobs)
    assert set(played.completion) == set(jobs)
    assert {FIRST.name: 0, SECOND.name: 8} in [slices for _, slices in played.slices_at]


class Service:
    """Plays the service: gives all to the job that came last."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []

    def start(self, workload: str) -> dict[str, str]:
        assert workload == NAME
        return {"id": "r"}

    def report(self, run: str, iteration: int, report: dict[str, Any]) -> dict[str, Any]:
        assert (run, iteration) == ("r", len(self.reports))
        self.reports.append(report)
        came = [one["job"] for one in report["submitted"]]
        changes = [{"job": job, "gpus": 8, "text": f"{job} runs", "trades": {"other": 8}} for job in came[-1:]]
        return {"source": "heuristic", "policy": "rule", "changes": changes, "wake_at": report["at"] + 1}


def test_steward_is_told_what_happened_and_does_what_it_decides() -> None:
    service = Service()
    managed = Managed(cast("Steward", service), NAME, {"small": 256, "large": 1024})
    choice = managed.react(Events(0.5, [FIRST], (), ()))
    assert choice == Choice({FIRST.name: 8}, 1.5)
    assert service.reports[0]["submitted"] == [
        {"job": FIRST.name, "at": 0.0, "gpus": 4, "maximum": 8, "iterations": 20}
        | {"application": "large", "batch": 1024, "queue": "batch"}
    ]
    progress = [Progress(FIRST, 1, 0.5, 8, None), Progress(FIRST, 2, 0.6, 8, 1.5)]
    choice = managed.react(Events(2.0, (), progress, [FIRST]))
    assert choice.slices == {}
    assert service.reports[1]["progressed"] == [
        {"job": FIRST.name, "iteration": 1, "metric": 0.5},
        {"job": FIRST.name, "iteration": 2, "metric": 0.6, "seconds": 1.5, "gpus": 8},
    ]
    assert service.reports[1]["ended"] == [{"job": FIRST.name}]
    assert managed.reason == f"{FIRST.name}: {FIRST.name} runs"


def test_figures_and_picture_say_who_was_sooner(tmp_path: Path) -> None:
    values = [(0.0, {JOBS[0].name: 8}), (3.0, dict.fromkeys((job.name for job in JOBS), 2))]
    learnt = [(1.0, JOBS[0], 0.5)]
    quick = Played("Steward", dict.fromkeys(JOBS, 4.0), values, learnt)
    slow = Played("FIFO", dict.fromkeys(JOBS, 8.0) | {JOBS[2]: 4.0, JOBS[3]: 4.0}, values, learnt)
    assert figures([quick, slow])[-3:-1] == [["mean", "4.0", "6.0"], ["mean of the urgent", "4.0", "4.0"]]
    first, second = verdict([quick, slow])
    assert first == "jobs ended 33% sooner under Steward than by FIFO"
    assert second.startswith("in this run urgent jobs ended as soon by FIFO")
    assert recorded(quick)["run"] == "Steward"
    png, html = story.pictures([quick, slow], tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "cluster" in html.name
