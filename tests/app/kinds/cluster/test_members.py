"""Jobs that are runs of registered workloads: as fast as these are believed to be, and wanted by their targets."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest

from app.kinds.cluster.engine import ENGINE
from app.kinds.cluster.jobs import NEVER
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.outlook import Beliefs
from app.kinds.cluster.placement import Deadlines
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.contract.engine import Member, Pending, Snapshot
from app.kinds.contract.kind import RunStart
from tests.answers import all_answered

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
AMOUNTS = np.arange(1, 9)
MEMBER = Member(AMOUNTS, 2 + 40 / AMOUNTS, 0.1, 90, 1_500.0, np.inf, 1.0)
"""A run takes 3,780 s on one GPU, 1,980 on two, 1,080 on four and 630 on eight."""
OTHERS = [{"job": f"other-{n}", "application": "unknown", "gpus": 1} for n in range(6)]


def decided(member: Member, reports: list[dict[str, Any]], worth: float = 1.0) -> list[dict[str, Any]]:
    """What a run of a cluster of eight GPUs is answered."""
    values = {
        "name": "lab",
        "kind": "cluster",
        "nodes": [{"name": "n", "count": 2, "gpus": 4}],
        "members": ["resnet18"],
    }
    spec = ClusterSpec.model_validate({**values, "weights": {"deadlines": worth}})
    snapshot = Snapshot("w", "lab", 1, spec, Layout(spec), None, None, None, None, 1, members={"resnet18": member})
    on = ENGINE.compile(snapshot)
    state = ENGINE.begin(on, "r", RunStart(workload="lab"), NOW).state
    answers = []
    for n, report in enumerate(reports):
        read = ENGINE.read(on, state, n, ENGINE.decode(msgspec.json.encode(report)))
        (answered,) = all_answered(ENGINE.answer(on, [Pending("r", n, state, read, {}, None)], NOW))
        state = answered.state
        answers.append(msgspec.json.decode(answered.decision))
    return answers


def member_gpus(answers: list[dict[str, Any]]) -> list[int]:
    """GPUs of the member's run after each report."""
    member_gpus, gpus = [], 0
    for answer in answers:
        gpus = next((one["gpus"] for one in answer["changes"] if one["job"] == "mine"), gpus)
        member_gpus.append(gpus)
    return member_gpus


SUBMITTED = [{"job": "mine", "application": "resnet18", "gpus": 1}, *OTHERS]


def test_a_member_is_not_taken_for_the_application_of_the_log_that_has_its_number() -> None:
    spec = ClusterSpec.model_validate(
        {"name": "lab", "kind": "cluster", "nodes": [{"name": "n", "count": 1, "gpus": 4}]}
    )
    empty = ClusterModel.unfitted(Layout(spec))
    log = empty.arrivals._replace(jobs=np.array([[0, 0, 1, 5.0, 100.0]]))
    beliefs = Beliefs(replace(empty, applications=("elsewhere",), arrivals=log), {"resnet18": MEMBER})
    assert beliefs.positions(np.array(["resnet18", "elsewhere"], object)).tolist() == [0, -1]
    assert np.isnan(beliefs.lengths.data[0])
    assert beliefs.lengths.usual.tolist() == [100.0, 100.0]


def test_a_run_of_a_member_gets_what_its_target_takes() -> None:
    reports = [{"at": 0, "submitted": SUBMITTED}]
    (answer,) = decided(MEMBER, reports)
    (mine,) = [one for one in answer["changes"] if one["job"] == "mine"]
    assert (answer["rule"], mine["gpus"], mine["seconds_wanted"]) == ("soonest", 4, 1_500.0)
    assert mine["seconds_left"] == pytest.approx(90 * 12 + 30)
    assert "deadline in 25 min" in mine["text"]
    assert all(one["seconds_wanted"] is None for one in answer["changes"] if one["job"] != "mine")
    assert member_gpus(decided(MEMBER, reports, worth=0.0))[0] < 4
    assert member_gpus(decided(MEMBER._replace(run_seconds=np.inf), reports))[0] < 4
    urgent = MEMBER._replace(run_seconds=800.0)  # all eight, while the others wait
    assert [member_gpus(decided(urgent, reports, worth))[0] for worth in (0.2, 3.0)] == [2, 8]


def test_what_can_not_be_in_time_gets_nothing_for_it() -> None:
    reports = [{"at": 0, "submitted": SUBMITTED}]
    hopeless = member_gpus(decided(MEMBER._replace(run_seconds=60.0), reports))
    assert hopeless == member_gpus(decided(MEMBER._replace(run_seconds=np.inf), reports))


def test_a_run_that_falls_behind_gets_more_and_one_ahead_gives_back() -> None:
    first = {"at": 0, "submitted": SUBMITTED}
    slow = {"at": 400, "progressed": [{"job": "mine", "iteration": 18}]}  # expected: 30
    late = decided(MEMBER, [first, slow], worth=3.0)
    assert member_gpus(late) == [4, 8]
    fast = {"at": 400, "progressed": [{"job": "mine", "iteration": 75}]}
    assert member_gpus(decided(MEMBER, [first, fast]))[1] <= 4


def test_a_target_for_each_iteration_counts_too() -> None:
    reports = [{"at": 0, "submitted": SUBMITTED}]
    each = MEMBER._replace(run_seconds=np.inf, iteration_seconds=13.0)
    assert member_gpus(decided(each, reports)) == [4]


def test_without_a_model_of_its_own_a_member_is_as_any_job() -> None:
    unknown = MEMBER._replace(seconds=np.full(8, np.nan))
    (answer,) = decided(unknown, [{"at": 0, "submitted": SUBMITTED}])
    assert answer["rule"] == "soonest"
    assert all(one["seconds_left"] is None for one in answer["changes"])


def test_gpus_that_a_member_can_not_use_are_idle() -> None:
    spec = ClusterSpec.model_validate({"name": "x", "kind": "cluster", "nodes": [{"name": "n", "count": 2, "gpus": 4}]})
    even = MEMBER._replace(amounts=np.array([2, 4]), seconds=np.array([22.0, 12.0]))
    beliefs = Beliefs(ClusterModel.unfitted(Layout(spec)), {"even": even})
    which = beliefs.positions(np.array(["even", "other"], object))
    seconds = beliefs.step_seconds(which, np.full(2, np.nan), np.tile([1, 2, 3, 4, 8], (2, 1)))
    np.testing.assert_allclose(seconds[0], [np.inf, 22, 22, 12, 12])
    np.testing.assert_allclose(seconds[1], 1 / np.array([1, 2, 3, 4, 8]))
    np.testing.assert_array_equal(beliefs.iterations(which), [90, np.nan])


def test_a_chance_is_a_half_where_the_expected_end_is_the_deadline() -> None:
    known = Deadlines(np.array([1_000.0, NEVER, 5.0]), np.full(3, 0.1), np.ones(3))
    chance = known.chance(10.0, np.array([[990.0, 495.0, np.inf]] * 3))
    np.testing.assert_allclose(chance[0], [0.5, 1.0, 0.0], atol=1e-4)
    assert (chance[1:] < 1e-6).all()
