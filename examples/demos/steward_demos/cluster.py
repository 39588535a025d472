"""``steward demo cluster``: measures two networks' trainings, fits a model, and runs four jobs on a shared CPU."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from rich.console import Console

from app.charts.figures import Figure, Ranked, ranking
from app.charts.timeline import courses, lasting, shares
from steward_demos.cluster_run import (
    JOBS,
    NAME,
    PERCENT,
    PROFILED_SLICES,
    SIZES,
    SLICES,
    SPEC,
    Managed,
    Played,
    Player,
    Ruled,
    Run,
    Trainings,
    equal_share,
    first_come,
    trainings,
)
from steward_demos.service import Steward, own_service
from steward_demos.show import Show, ended, save_pictures
from steward_demos.training import BATCH

Profile = dict[tuple[str, int], list[float]]


@dataclass(frozen=True)
class Options:
    """Options of the command: folder for results, and whether other players play too."""

    output: Path = Path("demo-output")
    compare: bool = True


def run(options: Options, console: Console | None = None) -> int:
    """Run the whole demo; returns the exit status."""
    show = Show(console)
    return ended(SharingDemo(options, show).run, show)


class SharingDemo:
    """The steps of the cluster demo, which print their results."""

    def __init__(self, options: Options, show: Show) -> None:
        self.options, self.show = options, show
        self.started = time.monotonic()

    def run(self) -> None:
        """All steps, from the profile to the picture."""
        with ExitStack() as stack:
            self.show.step(f"Start the service, and {len(JOBS)} trainings of two sizes")
            several = stack.enter_context(trainings())
            steward = stack.enter_context(own_service())
            profile = self.profile(several)
            self.learn(steward, several, profile)
            self.conclude(self.play(several, steward))

    def profile(self, several: Trainings) -> Profile:
        """Measure both networks on several numbers of slices; seconds by network and slices."""
        self.show.step(f"Profile: an iteration of each size on slices of {PERCENT} % of a core")
        several.load()
        several.calibrate()
        self.show.say(f"CPU limited by: {several.limit}")
        measured: Profile = {}
        with self.show.bar("profile") as progress:
            for number, size in enumerate(SIZES, 1):
                for slices, seconds in several.profile(size):
                    measured.setdefault((size, slices), []).append(seconds)
                progress.update(number / len(SIZES), size)
        self.show.table(
            ["network", *(f"{slices} slice{'s' * (slices > 1)}" for slices in PROFILED_SLICES)],
            [[size, *(f"{mean(measured[size, slices]):.2f} s" for slices in PROFILED_SLICES)] for size in SIZES],
        )
        return measured

    def learn(self, steward: Steward, several: Trainings, profile: Profile) -> None:
        """Register the workload, upload the measurements, and fit a model."""
        self.show.step("Learn: how much faster each size gets by another slice")
        steward.register(SPEC)
        rows = [
            f"{size},{slices},{several.batches[size] * BATCH},{each:.6f}"
            for (size, slices), seconds in profile.items()
            for each in seconds
        ]
        steward.upload(NAME, "\n".join(["application,gpus,batch,seconds", *rows]), name="profile")
        fitted = self.show.follow("fit  ", steward.follow(steward.fit(NAME)))
        self.show.say(f"domain model: {steward.model(NAME, fitted['result']['model'])['family']}")

    def play(self, several: Trainings, steward: Steward) -> list[Played]:
        """Run the same jobs under Steward and, to compare, with equal shares and first come, first served."""
        self.show.step(f"Train: {len(JOBS)} jobs share {SLICES} slices")
        self.show.table(
            ["job", "network", "queue", "iterations", "comes at"],
            [[job.name, job.size, job.queue, str(job.iterations), f"{job.at:g} s"] for job in JOBS],
        )
        samples = {size: batches * BATCH for size, batches in several.batches.items()}
        managed = Managed(steward, NAME, samples)
        players: list[Player] = [managed]
        if self.options.compare:
            players += [Ruled("equal share", equal_share), Ruled("FIFO", first_come)]
        played = [self.one(several, player) for player in players]
        managed.finish()
        self.show.say(f"[dim]{managed.policy}; one of its reasons: {managed.reason}[/]")
        return played

    def one(self, several: Trainings, player: Player) -> Played:
        """Play one run to its end."""
        with self.show.bar(f"{player.name:12}") as progress:
            return Run(several, player, JOBS).play(progress.update)

    def conclude(self, played: Sequence[Played]) -> None:
        """Print the summary, and save picture and figures."""
        self.show.step("Summary: every figure is measured in this demo")
        self.show.table(["seconds from arrival to end", *(one.name for one in played)], figures(played))
        for line in verdict(played):
            self.show.say(line)
        files = pictures(played, self.options.output)
        record = self.options.output / "cluster.json"
        record.write_text(json.dumps([recorded(one) for one in played], indent=1))
        self.show.say(f"picture and figures: {', '.join(str(path) for path in [*files, record])}")
        self.show.say(f"the whole demo took {time.monotonic() - self.started:.0f} s")


def figures(played: Sequence[Played]) -> list[list[str]]:
    """Rows of the summary: a label, and one figure in seconds per run."""
    jobs = [
        [f"{job.name} ({job.size}, {job.queue})", *(f"{one.completion[job]:.1f}" for one in played)] for job in JOBS
    ]
    return [
        *jobs,
        ["mean", *(f"{one.mean():.1f}" for one in played)],
        ["mean of the urgent", *(f"{one.mean('urgent'):.1f}" for one in played)],
        ["until all were done", *(f"{one.seconds:.1f}" for one in played)],
    ]


def verdict(played: Sequence[Played]) -> list[str]:
    """Sentences that compare Steward's mean completion times, the first run's, with the others'."""
    steward, others = played[0], played[1:]
    lines = []
    for queue, whose in ((None, "jobs"), ("urgent", "urgent jobs")):
        for other in others:
            gain = 1 - steward.mean(queue) / other.mean(queue)
            if gain > 0:
                lines.append(f"{whose} ended {gain:.0%} sooner under Steward than by {other.name}")
            else:
                lines.append(f"in this run {whose} ended as soon by {other.name}, or sooner ({-gain:.0%})")
    return lines


def recorded(one: Played) -> Mapping[str, object]:
    """A run as a JSON object for the file of figures."""
    return {
        "run": one.name,
        "completion": {job.name: seconds for job, seconds in one.completion.items()},
        "given": [{"at": at, **slices} for at, slices in one.slices_at],
    }


def pictures(played: Sequence[Played], folder: Path) -> list[Path]:
    """Write ``cluster.png`` and the self-contained ``cluster.html``; both paths. The first run is Steward's."""
    return save_pictures(list(charts(played)), folder / "cluster.png")


def charts(played: Sequence[Played]) -> Iterator[Figure]:
    """Charts of slices by job in each run, of accuracies in Steward's, and of completion times."""
    last = max(one.seconds for one in played)
    for one in played:
        moments = [(at, {job.name: float(slices.get(job.name, 0)) for job in JOBS}) for at, slices in one.slices_at]
        text = "Slices of each job, one on top of the other. Dashed: all there are."
        figure = shares(f"Who had what, {one.name}", "slices", [*moments, (one.seconds, {})], SLICES, text)
        yield lasting(figure, last)
    learnt = {job.name: [(at, accuracy) for at, of, accuracy in played[0].learnt if of == job] for job in JOBS}
    text = "On digits that were not trained on."
    yield courses(f"Accuracy, {played[0].name}", "accuracy", learnt, text, steps=True)
    taken = [
        Ranked(f"{job.name}, {one.name}", one.completion[job], chosen=one is played[0])
        for job in JOBS
        for one in played
        if job in one.completion
    ]
    yield ranking("How long each job took", "seconds from arrival to end", taken, f"Coloured: {played[0].name}.")
