"""``steward demo inference``: trains and measures networks, fits and trains on that, and serves a burst of requests."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from rich.console import Console

from app.charts.figures import Figure
from app.charts.timeline import Course, counts, courses, lasting, shade_interval
from steward_demos.inference_run import (
    BATCHES,
    BURST,
    CONTROL_SECONDS,
    NAME,
    PERCENT,
    QUALITY,
    SERVERS,
    USERS,
    Events,
    InfAdapter,
    Managed,
    Played,
    Player,
    Pool,
    Request,
    Response,
    Run,
    Start,
    Static,
    registered,
    schedule,
    servers,
    worth,
)
from steward_demos.inference_server import SIZES
from steward_demos.service import Steward, own_service
from steward_demos.show import Show, ended, save_pictures

Profile = Mapping[tuple[str, int], Sequence[float]]
"""Measured seconds by network and batch size."""


def rehearsed(player: Player, load: Sequence[Request], accuracy: Mapping[str, float], profile: Profile) -> float:
    """Mean response quality of a player over the load; dropped requests count 0."""
    ends: dict[int, tuple[float, Start]] = {}
    came, total = 0, 0.0
    by_page = {request.page: request for request in load}
    while came < len(load) or ends:
        next_arrival = load[came].at if came < len(load) else float("inf")
        now = min([next_arrival, *(end for end, _ in ends.values())])
        done = [server for server, (end, _) in ends.items() if end <= now]
        for start in [ends.pop(server)[1] for server in done]:
            total += sum(worth(QUALITY, accuracy, by_page[page], start.variant, now) for page in start.pages)
        arrived = [load[came]] if next_arrival <= now else []
        came += len(arrived)
        choice = player.react(Events(now, arrived, [(server, now) for server in done]))
        ends |= {start.server: (now + expected(profile, start), start) for start in choice.starts}
    return total / len(load)


def expected(profile: Profile, start: Start) -> float:
    """Mean measured seconds of the smallest profiled batch at least as large; raises ValueError if there is none."""
    size = min(size for name, size in profile if name == start.variant and size >= len(start.pages))
    return mean(profile[start.variant, size])


ROUNDS = 3  # measurements of each batch on each server
UTILISATION = 0.6  # of the large network's capacity, usually
BURST_FACTOR = 3.0


@dataclass(frozen=True)
class Options:
    """Options of the command.

    Attributes:
        output: folder for results.
        seconds: duration of the arrivals.
        compare: whether other players play too.
        budget: environment steps per seed of the training.
    """

    output: Path = Path("demo-output")
    seconds: float = 20.0
    compare: bool = True
    budget: int = 300_000


def run(options: Options, console: Console | None = None) -> int:
    """Run the whole demo; returns the exit status."""
    show = Show(console)
    return ended(ServingDemo(options, show).run, show)


def capacity(profile: Profile) -> dict[str, float]:
    """Requests per second of a server by network, at its best batch size."""
    values: dict[str, float] = {}
    for (name, batch), seconds in profile.items():
        values[name] = max(values.get(name, 0.0), batch / mean(seconds))
    return values


def logged(usual: float) -> list[Request]:
    """The requests of five minutes, used as a training log; ``usual`` requests per second outside the burst."""
    return schedule(usual, BURST_FACTOR * usual, seed=1, seconds=300.0)


def batch_sizes(profile: Profile) -> dict[str, int]:
    """Largest batch size by network whose mean seconds keep full quality for the most impatient user; at least 1."""
    patience = min(quality["full_until"] for quality in QUALITY.values())
    batch_sizes = dict.fromkeys((name for name, _ in profile), 1)
    for (name, batch), seconds in profile.items():
        if mean(seconds) <= patience:
            batch_sizes[name] = max(batch_sizes[name], batch)
    return batch_sizes


class ServingDemo:
    """The steps of the inference demo, which print their results."""

    def __init__(self, options: Options, show: Show) -> None:
        self.options, self.show = options, show
        self.started = time.monotonic()

    def run(self) -> None:
        """All steps, from training the networks to the picture."""
        with ExitStack() as stack:
            self.show.step("Start the service, and two servers that have three networks to choose from")
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="steward-demo-"))
            pool = stack.enter_context(servers(Path(folder)))
            steward = stack.enter_context(own_service())
            accuracy = self.train(pool)
            profile = self.profile(pool)
            usual = UTILISATION * SERVERS * capacity(profile)["large"]
            self.learn(steward, accuracy, profile, usual)
            self.conclude(self.play(pool, steward, accuracy, profile, usual))

    def train(self, pool: Pool) -> dict[str, float]:
        """Start the servers and train the networks; accuracy (share) by network."""
        pool.load()
        accuracy = {}
        with self.show.bar("train") as progress:
            for number, (name, right) in enumerate(pool.train(), 1):
                accuracy[name] = right
                progress.update(number / 3, name)
        self.show.say(", ".join(f"{name}: {right:.1%} of digits right" for name, right in accuracy.items()))
        return accuracy

    def profile(self, pool: Pool) -> Profile:
        """Measure every network at every batch size on both servers under CPU limits; seconds by network and size."""
        self.show.step(f"Profile: batches of each network on a server, {PERCENT} % of a core each")
        digits = pool.calibrate()
        self.show.say(f"a request is a page of {digits:,} digits on this machine; CPU limited by: {pool.limit}")
        measured = pool.profile(BATCHES, ROUNDS)
        self.show.table(
            ["network", *(f"batch of {size}" for size in BATCHES), "requests/s"],
            [
                [name, *(f"{mean(measured[name, size]) * 1e3:.0f} ms" for size in BATCHES), f"{rate:.1f}"]
                for name, rate in capacity(measured).items()
            ],
        )
        return measured

    def learn(self, steward: Steward, accuracy: Mapping[str, float], profile: Profile, usual: float) -> None:
        """Register the workload, upload measurements and a log of requests, fit a model, train an agent."""
        self.show.step("Learn: from the measured batches, and a log of the requests of five minutes")
        steward.register(registered(accuracy))
        rows = [f"{name},{size},cpu,{each:.6f}" for (name, size), seconds in profile.items() for each in seconds]
        steward.upload(NAME, "\n".join(["variant,batch,server,seconds", *rows]), name="profile")
        log = [f"{r.user},{r.at:.3f}" for r in logged(usual)]
        steward.upload(NAME, "\n".join(["user,time", *log]), name="log")
        fitted = self.show.follow("fit  ", steward.follow(steward.fit(NAME)))
        report = steward.model(NAME, fitted["result"]["model"])
        self.show.say(f"domain model: {report['family']}")
        trained = self.show.follow("train", steward.follow(steward.train(NAME, budget=self.options.budget)))
        self.show.say(f"[dim]{steward.agent(NAME, trained['result']['agent'])['reason']}[/]")

    def play(
        self, pool: Pool, steward: Steward, accuracy: Mapping[str, float], profile: Profile, usual: float
    ) -> list[Played]:
        """Serve the same load under Steward and, to compare, by InfAdapter's rule and with the best single network."""
        seconds = self.options.seconds
        load = schedule(usual, BURST_FACTOR * usual, seed=0, seconds=seconds)
        burst = f"{BURST_FACTOR * usual:.0f}/s from second {BURST[0] * seconds:g} to {BURST[1] * seconds:g}"
        self.show.step(f"Serve {len(load)} requests of two users in {seconds:g} s: {usual:.0f}/s, and {burst}")
        worthless = {name: quality["zero_at"] for name, quality in QUALITY.items()}
        sizes, rates = batch_sizes(profile), capacity(profile)
        managed = Managed(steward, NAME)
        players: list[Player] = [managed]
        if self.options.compare:
            players += [InfAdapter(accuracy, rates, worthless, sizes, usual, CONTROL_SECONDS)]
            players += [Static(self.best_alone(accuracy, profile, usual), worthless, sizes)]
        played = [self.one(pool, player, accuracy, load) for player in players]
        managed.finish()
        self.show.say(f"[dim]{managed.policy}; one of its reasons: {managed.reason}[/]")
        return played

    def best_alone(self, accuracy: Mapping[str, float], profile: Profile, usual: float) -> str:
        """The network with the best mean quality on the log when it is used alone, by simulation."""
        worthless, sizes = {name: quality["zero_at"] for name, quality in QUALITY.items()}, batch_sizes(profile)
        log = logged(usual)
        result = {name: rehearsed(Static(name, worthless, sizes), log, accuracy, profile) for name in accuracy}
        text = ", ".join(f"{name} {quality:.3f}" for name, quality in result.items())
        self.show.say(f"[dim]one network throughout, expected of the log: {text}; the best of them plays[/]")
        return max(result, key=lambda name: result[name])

    def one(self, pool: Pool, player: Player, accuracy: Mapping[str, float], load: Sequence[Request]) -> Played:
        """Play one run to its end."""
        with self.show.bar(f"{player.name:18}") as progress:
            run = Run(pool, player, QUALITY, accuracy, load)
            return run.play(lambda now: progress.update(min(now / self.options.seconds, 1.0)))

    def conclude(self, played: Sequence[Played]) -> None:
        """Print the summary, and save picture and figures."""
        self.show.step("Summary: every figure is measured in this demo")
        self.show.table(["", *(one.name for one in played)], figures(played))
        for line in verdict(played):
            self.show.say(line)
        files = pictures(played, self.options.seconds, self.options.output)
        record = self.options.output / "inference.json"
        record.write_text(json.dumps([{"run": one.name, "responses": one.responses} for one in played], indent=1))
        self.show.say(f"picture and figures: {', '.join(str(path) for path in [*files, record])}")
        self.show.say(f"the whole demo took {time.monotonic() - self.started:.0f} s")


def figures(played: Sequence[Played]) -> list[list[str]]:
    """Rows of the summary: a label, and one figure per run."""
    by_user = [[f"… of {user}", *(f"{one.of(user).quality:.3f}" for one in played)] for user in USERS]
    return [
        ["response quality", *(f"{one.quality:.3f}" for one in played)],
        *by_user,
        ["digits right, in time", *(f"{one.right:.1%}" for one in played)],
        ["mean delay", *(f"{one.delay * 1e3:.0f} ms" for one in played)],
        ["given up", *(str(sum(not response.variant for response in one.responses)) for one in played)],
    ]


def verdict(played: Sequence[Played]) -> list[str]:
    """Sentences that compare Steward's run, the first, with the best other one."""
    steward, others = played[0], played[1:]
    if not others:
        return []
    best = max(others, key=lambda one: one.quality)
    ahead = steward.quality - best.quality
    if ahead > 0:
        return [
            f"Steward's answers were worth {ahead / best.quality:.1%} more than those of the next best, {best.name}"
        ]
    return [f"in this run {best.name} was as good as deciding, or better: {best.quality:.3f} to {steward.quality:.3f}"]


GIVEN_UP = "given up"


def pictures(played: Sequence[Played], seconds: float, folder: Path) -> list[Path]:
    """Write ``inference.png`` and the self-contained ``inference.html``; both paths. The first run is Steward's."""
    return save_pictures(charts(played, seconds), folder / "inference.png")


def charts(played: Sequence[Played], seconds: float) -> list[Figure]:
    """Charts of arrivals, queue lengths, Steward's networks, and quality per user, with the burst shaded; ``seconds``
    in all.
    """
    own = played[0]
    users = sorted({response.request.user for response in own.responses})
    came = _by_second(own, lambda response: response.request.user, users)
    chosen = _by_second(own, lambda response: response.variant or GIVEN_UP, [*SIZES, GIVEN_UP])
    quality = {f"{one.name}, {user}": _quality(one, user) for one in played for user in users}
    drawn = [
        counts("Requests that came in each second", "requests", came, 1.0, "By user; shaded: the burst."),
        courses("How many waited", "requests", {one.name: one.waiting for one in played}, "By run.", steps=True),
        counts("Which network answered them", "requests", chosen, 1.0, f"Under {own.name}."),
        courses("Response quality", "mean quality", quality, "Of the requests that came in each second, by user."),
    ]
    return [shade_interval(lasting(one, seconds), BURST[0] * seconds, BURST[1] * seconds) for one in drawn]


def _by_second(one: Played, of: Callable[[Response], str], names: Sequence[str]) -> dict[str, Course]:
    counts = Counter((of(response), int(response.request.at)) for response in one.responses)
    courses = {
        name: [(float(at), float(counts[name, at])) for at in sorted({at for _, at in counts})] for name in names
    }
    return {name: course for name, course in courses.items() if any(count for _, count in course)}


def _quality(one: Played, user: str) -> Course:
    """Mean quality of the requests that arrived in each second, as (middle of the second, quality)."""
    by_second = defaultdict[int, list[float]](list)
    for response in one.responses:
        if response.request.user == user:
            by_second[int(response.request.at)].append(response.quality)
    return [(at + 0.5, mean(values)) for at, values in sorted(by_second.items())]
