"""The serving demo's load, its players, a run, its figures and its picture; the servers are played."""

import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from steward_demos import inference as story
from steward_demos.inference import batch_sizes, capacity, figures, rehearsed, verdict
from steward_demos.inference_run import (
    BURST,
    QUALITY,
    Answered,
    Events,
    InfAdapter,
    Managed,
    Played,
    Player,
    Pool,
    Request,
    Run,
    Start,
    Static,
    schedule,
    worth,
)
from steward_demos.service import Steward

ACCURACY = {"small": 0.6, "large": 0.8}
WORTHLESS = {name: quality["zero_at"] for name, quality in QUALITY.items()}
PROFILE = {("small", 1): [0.04], ("small", 4): [0.05], ("large", 1): [0.1], ("large", 4): [0.5]}


class Servers:
    """Plays the pool: every batch is done a moment later, all of it right."""

    def __init__(self) -> None:
        self.started: list[Start] = []
        self.open: list[Start] = []

    def start(self, server: int, variant: str, pages: Sequence[int]) -> None:
        assert server not in {start.server for start in self.open}, "it was not free"
        self.open.append(Start(server, variant, pages))
        self.started.append(self.open[-1])

    def wait(self, until: float) -> list[Answered]:
        if not self.open:
            time.sleep(max(0.0, until - time.monotonic()))
        done, self.open = self.open, []
        return [Answered(start.server, 0.01, [1.0] * len(start.pages)) for start in done]


def play(player: Player, load: Sequence[Request]) -> tuple[Played, Servers]:
    servers = Servers()
    run = Run(cast("Pool", servers), player, QUALITY, ACCURACY, load)
    return run.play(lambda _: None), servers


def test_a_burst_comes_when_it_is_told() -> None:
    load = schedule(10, 40, seed=3, seconds=200)
    at = np.array([request.at for request in load])
    within = (at >= 200 * BURST[0]) & (at < 200 * BURST[1])
    burst, usual = within.sum() / 50, (~within).sum() / 150
    assert burst == pytest.approx(40, abs=4 * np.sqrt(40 / 50))  # four standard errors
    assert usual == pytest.approx(10, abs=4 * np.sqrt(10 / 150))
    assert (np.diff(at) > 0).all()
    assert [request.page for request in load] == list(range(len(load)))
    assert schedule(10, 40, seed=3, seconds=200) == load


def test_capacity_and_batches_follow_from_the_profile() -> None:
    assert capacity(PROFILE) == {"small": pytest.approx(80), "large": pytest.approx(10)}
    assert batch_sizes(PROFILE) == {"small": 4, "large": 1}


def test_infadapter_takes_what_suffices_and_is_most_accurate() -> None:
    rule = InfAdapter(ACCURACY, capacity(PROFILE), WORTHLESS, batch_sizes(PROFILE), usual=10, interval=1.0)
    assert rule.on == ("large", "large")
    burst = [Request(0.02 * i, "archive", i) for i in range(50)]
    rule.react(Events(1.0, burst, ()))
    assert sorted(rule.on) == ["large", "small"]
    rule.react(Events(9.0, (), ()))  # eight intervals of nothing
    assert rule.on == ("large", "large")


def test_a_static_serves_in_order_and_gives_up_what_is_worth_nothing() -> None:
    player = Static("large", WORTHLESS, {"large": 2})
    load = [Request(0.0, "search", 0), Request(0.1, "archive", 1), Request(0.2, "archive", 2)]
    choice = player.react(Events(1.5, load, ()))
    assert list(choice.dropped) == [0]  # search waits for no more than 1.2 s
    assert [list(start.pages) for start in choice.starts] == [[1, 2]]
    assert player.react(Events(1.6, [Request(1.6, "search", 3)], [(0, 1.6)])).starts[0].pages == [3]


def test_every_request_is_answered_once_or_given_up() -> None:
    load = schedule(300, 300, seed=1, seconds=1)
    played, servers = play(Static("small", WORTHLESS, {"small": 4}), load)
    assert [response.request for response in played.responses] == load
    served = list(itertools.chain.from_iterable(start.pages for start in servers.started))
    assert sorted(served) == [r.request.page for r in played.responses if r.variant]
    assert all(response.at >= response.request.at for response in played.responses)


def test_a_rehearsal_comes_to_what_a_run_would() -> None:
    load = [Request(float(i), "search", i) for i in range(10)]
    alone = rehearsed(Static("large", WORTHLESS, {"large": 4}), load, ACCURACY, {("large", 1): [0.1, 0.3]})
    assert alone == pytest.approx(1.0)  # nobody waits: each takes 0.2 s, and 0.3 s are in time
    small = rehearsed(Static("small", WORTHLESS, {"small": 4}), load, ACCURACY, {("small", 1): [0.1]})
    assert small == pytest.approx(0.75)  # of the best network's accuracy
    slow = {("large", 1): [2.0], ("large", 4): [2.0]}
    assert rehearsed(Static("large", WORTHLESS, {"large": 4}), load, ACCURACY, slow) == 0.0  # all come too late
    long = [Request(0.1 * i, "archive", i) for i in range(40)]
    steady = {("large", 1): [0.5], ("large", 2): [0.6], ("large", 4): [0.8]}  # 10 a second on two servers: as many come
    assert 0.5 < rehearsed(Static("large", WORTHLESS, {"large": 4}), long, ACCURACY, steady) <= 1.0


class Service:
    """Plays the service: starts whatever comes on the first server, one by one."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.free, self.finished = True, ""

    def start(self, workload: str) -> dict[str, Any]:
        return {"id": f"run of {workload}"}

    def report(self, run: str, number: int, report: dict[str, Any]) -> dict[str, Any]:
        self.waiting += [one["id"] for one in report["arrived"]]
        self.free |= any(one["server"] == "cpu-0" for one in report["finished"])
        starts = []
        if self.free and self.waiting:
            self.free = False
            starts = [{"server": "cpu-0", "variant": "large", "requests": [self.waiting.pop(0)]}]
        reason = {"code": "best", "text": f"report {number}"}
        return {
            "source": "heuristic",
            "policy": "rule",
            "reason": reason,
            "start": starts,
            "drop": [],
            "wake_at": None,
        }

    def finish(self, run: str) -> None:
        self.finished = run


def test_what_the_service_starts_is_started() -> None:
    service = Service()
    player = Managed(cast("Steward", service), "pages")
    load = schedule(100, 100, seed=2, seconds=0.3)
    played, servers = play(player, load)
    player.finish()
    assert [list(start.pages) for start in servers.started] == [[request.page] for request in load]
    assert service.finished == "run of pages"
    assert player.policy == "heuristic: rule"
    assert player.reason.startswith("report ")
    assert played.right == 1


def test_worth_falls_between_the_users_two_times() -> None:
    request = Request(1.0, "search", 0)
    assert worth(QUALITY, ACCURACY, request, "large", 1.2) == 1
    assert worth(QUALITY, ACCURACY, request, "small", 1.3) == pytest.approx(0.75)
    assert worth(QUALITY, ACCURACY, request, "large", 1.75) == pytest.approx(0.5)
    assert worth(QUALITY, ACCURACY, request, "large", 9.0) == 0


def test_the_summary_says_who_was_better(tmp_path: Path) -> None:
    load = schedule(60, 90, seed=4, seconds=2)
    good, _ = play(Static("large", WORTHLESS, {"large": 4}), load)
    bad, _ = play(Static("small", WORTHLESS, {"small": 4}), load)
    assert "worth 33" in verdict([good, bad])[0]
    assert "as good as deciding" in verdict([bad, good])[0]
    assert verdict([good]) == []
    assert {len(row) for row in figures([good, bad])} == {3}
    for path in story.pictures([good, bad], 2.0, tmp_path):
        assert path.stat().st_size > 10_000
