"""When jobs that wait are said to start, and when they do."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.views import jobs_table
from app.kinds.contract.views import MOST_ROWS
from tests.app.kinds.cluster.test_experience import Live, came, on

TWO = ClusterSpec.model_validate(
    {"name": "lab", "kind": "cluster", "nodes": [{"name": "n", "count": 2, "gpus": 4}], "restart_seconds": 0}
)


def test_starts_are_told_in_order_of_queues_and_submission_as_running_jobs_end() -> None:
    run = Live(TWO)
    whole = {"minimum": 4, "maximum": 4, "iterations": 10}
    run.report(at=0, submitted=[came("a", "x", 4, batch=8, **whole), came("b", "x", 4, batch=8, **whole)])
    run.report(at=60, progressed=[{**on("a", 1.0), "iteration": 2}, {**on("b", 1.0), "iteration": 1}])
    answer = run.report(at=120, submitted=[came(name, "x", 4, batch=8, **whole) for name in "cde"])
    assert answer["waiting"] == 3
    left = run.on.outlook(run.state).seconds_left(run.state.jobs.gpus[:, None])[:2, 0]
    first, second, *rest = answer["starts"]
    assert rest == []  # what runs leaves nothing to e that could be told
    assert [first["job"], second["job"]] == ["c", "d"]
    assert [first["seconds"], second["seconds"]] == pytest.approx(sorted(left), abs=0.1)
    assert first["seconds"] < second["seconds"]
    assert first["seconds_low"] is None


def test_a_start_is_told_by_the_same_seconds_left_as_the_ends_of_running_jobs() -> None:
    run = Live(TWO)
    whole = {"minimum": 4, "maximum": 4, "iterations": 10}
    run.report(at=0, submitted=[came("a", "x", 4, batch=8, **whole), came("b", "x", 4, batch=8, **whole)])
    run.report(at=60, progressed=[{**on("a", 1.0), "iteration": 2}, {**on("b", 1.0), "iteration": 1}])
    run.report(at=120, submitted=[came(name, "x", 4, batch=8, **whole) for name in "cd"])

    def expected(*restarting: float) -> dict[str, str]:
        jobs = run.state.jobs._replace(restarting=np.array([*restarting, 0.0, 0.0]))
        table = jobs_table(run.on, run.state._replace(jobs=jobs))
        return {row[0]: row[table.columns.index("ETA")] for row in table.rows}

    for a, b in ((0.0, 0.0), (4_000.0, 700.0)):  # until they have restarted they don't train, and others wait for them
        eta = expected(a, b)
        assert {eta["c"], eta["d"]} == {f"starts in {eta['a']}", f"starts in {eta['b']}"}
        assert eta["a"] != eta["b"]
    assert expected(0.0, 0.0)["c"] != expected(4_000.0, 700.0)["c"]


def test_of_jobs_that_were_never_measured_no_start_is_told() -> None:
    answer = Live(TWO).report(at=0, submitted=[came(name, None, 8, minimum=8, maximum=8) for name in "abc"])
    assert (answer["waiting"], answer["starts"]) == (2, [])


def test_intervals_hold_from_nineteen_starts_on() -> None:
    random, run, values = np.random.default_rng(3), Live(TWO), dict[str, tuple[float, float, float]]()
    within, ends, number = list[bool](), list[tuple[float, str]](), 0
    comes = np.cumsum(random.exponential(330.0, 250)).tolist()
    seconds = dict(zip([f"j{n}" for n in range(250)], random.lognormal(6.3, 0.5, 250).tolist(), strict=True))
    while comes or ends:
        now = min(comes[0] if comes else np.inf, ends[0][0] if ends else np.inf)
        ended = [heapq.heappop(ends)[1] for _ in range(len(ends)) if ends[0][0] <= now]
        submitted = []
        while comes and comes[0] <= now:
            comes.pop(0)
            submitted.append(came(f"j{number}", "x", 4, batch=8, minimum=4, maximum=4))
            number += 1
        running = [on(name, 1.0) for _, name in ends]
        answer = run.report(at=now, submitted=submitted, progressed=running, ended=[{"job": name} for name in ended])
        for change in answer["changes"]:
            if change["code"] == "started":
                heapq.heappush(ends, (now + seconds[change["job"]], change["job"]))
                moment, low, high = values.pop(change["job"], (0.0, 0.0, 0.0))
                within += [low <= now - moment <= high] if high else []
        for start in answer["starts"]:
            if start["seconds_low"] is not None:
                assert start["seconds_low"] < start["seconds_high"]
                values.setdefault(start["job"], (now, start["seconds_low"], start["seconds_high"]))
        assert all((start["seconds_low"] is None) == (len(run.state.off_starts) < 19) for start in answer["starts"])
    assert len(within) > 40
    assert 0.75 <= np.mean(within) < 1


def test_each_pending_job_says_why_it_has_no_gpus() -> None:
    run = Live(TWO)
    whole = {"minimum": 3, "maximum": 3, "iterations": 10}
    run.report(at=0, submitted=[came("a", "x", 3, batch=8, **whole), came("b", "x", 3, batch=8, **whole)])
    run.report(at=60, progressed=[{**on("a", 1.0), "iteration": 2}, {**on("b", 1.0), "iteration": 1}])
    lost = [{"node": "n-0", "gpus": 3}]
    wide = came("wide", None, 8, minimum=8, maximum=8)
    run.report(at=120, submitted=[wide, *(came(name, "x", 3, batch=8, **whole) for name in "cd")], nodes=lost)
    table = jobs_table(run.on, run.state)
    assert table.caption == "2 running, 3 pending."
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert [*rows] == ["a", "b", "wide", "c", "d"]
    assert (rows["a"]["State"], rows["a"]["GPUs"], rows["a"]["Progress"]) == ("running", "3 of 3", "2 of 10 (20 %)")
    assert rows["a"]["ETA"] not in ("", "–")
    assert rows["wide"]["Why pending"] == "needs 8 GPUs, 7 of 8 are present"
    assert rows["c"]["Why pending"] == "needs 3 GPUs, 1 free"
    assert rows["d"]["Why pending"] == "needs 3 GPUs, 1 free; behind c"
    assert rows["c"]["ETA"] == "–"  # behind one that can't start
    names = [f"j{n}" for n in range(70)]
    run.report(at=180, submitted=[came(name, None, 8, minimum=8, maximum=8) for name in names])
    many = jobs_table(run.on, run.state)
    assert (len(many.rows), many.more) == (MOST_ROWS, 75 - MOST_ROWS)
    assert many.rows[0][0] == "a"
    grown = run.state._replace(jobs=run.state.jobs._replace(minimum=np.full(75, 12)))  # of a spec with more nodes
    assert jobs_table(run.on, grown).rows[-1][-1] == "can never start: needs 12 GPUs, the cluster has 8"
