"""The domain model of kind ``cluster``: what was planted in samples is found, and told with its errors."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from app.kinds.cluster.arrivals import GPUS_IN_USE
from app.kinds.cluster.decide import Compiled
from app.kinds.cluster.example import SAMPLES, STEPS
from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.model import PARAMETERS, ClusterModel, predict
from app.kinds.cluster.outlook import Beliefs
from app.kinds.cluster.placement import slowdowns
from app.kinds.cluster.samples import ASKED, BY_APPLICATION, DURATION, QUEUE, TIME, WAIT, WIDTHS, ClusterSamples
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.throughput import Place, seconds, slowdown
from app.kinds.contract.engine import Snapshot
from app.kinds.contract.inputs import IncompatibleModel, InvalidInput, Sample
from app.kinds.forecasting.answer import NextHour, deserialise
from app.kinds.records import JSON
from tests.app.kinds.cluster.test_members import MEMBER
from workers.estimators.base import TooLittleData
from workers.inputs import Workload
from workers.kinds.cluster.estimation import NO_JOBS, SharedSteps, fit_arrivals, fit_pairs, forecasts, gpus_in_use
from workers.kinds.cluster.fit import Curve, classes, fit, fit_class
from workers.kinds.contract import FittedModel

MATRIX = np.array([[1.1, 1.5, 1.3], [1.05, 1.2, 1.9], [1.0, 1.4, 1.25]])
"""Slow-downs of one application (row) beside another (column)."""


def spec(queues: int = 1, speed: float = 1.0) -> ClusterSpec:
    nodes = [{"name": "a", "count": 4, "gpus": 4, "speed": speed}]
    named = [{"name": f"q{number}"} for number in range(queues)]
    return ClusterSpec.model_validate({"name": "x", "kind": "cluster", "nodes": nodes, "queues": named})


def workload(body: bytes, of: ClusterSpec | None = None) -> Workload:
    """With the executions of a JSON body."""
    cluster = of or spec()
    codec = ClusterSamples(Layout(cluster))
    read = list(codec.formats[JSON].reader(codec, None).read(iter([body])))
    assert all(isinstance(one, Sample) for one in read)
    return Workload(
        cluster, samples=[(one.execution, codec.unpack(one.data)) for one in read if isinstance(one, Sample)]
    )


@pytest.fixture(scope="module")
def fitted() -> FittedModel:
    return fit(workload(SAMPLES[JSON]), 0)


@pytest.fixture(scope="module")
def model(fitted: FittedModel) -> ClusterModel:
    return ClusterModel.from_bytes(fitted.model)


def ask(model: ClusterModel, **query: str) -> dict[str, Any]:
    return predict(Layout(spec()), model, {name: [value] for name, value in query.items()})


class TestModel:
    def test_it_goes_through_bytes_and_knows_its_queues(self, fitted: FittedModel, model: ClusterModel) -> None:
        assert model.to_bytes() == fitted.model
        model.check(Layout(spec()))
        with pytest.raises(IncompatibleModel, match="1 queues, not 2"):
            model.check(Layout(spec(2)))
        with pytest.raises(IncompatibleModel):
            ClusterModel.from_bytes(b"{}")

    def test_what_was_measured_is_foretold(self, model: ClusterModel) -> None:
        for row in STEPS:
            place = Place(*(np.array(value) for value in (row["gpus"], row["nodes"], row["batch"] / row["gpus"])))
            result = float(seconds(model.throughput, model.positions[row["application"]], place))
            assert result == pytest.approx(row["seconds"], rel=0.25)

    def test_every_part_tells_its_error(self, fitted: FittedModel) -> None:
        report = fitted.report
        assert report["metrics"]["seconds"]["mape"] < 0.5 * report["metrics"]["seconds"]["naive_mape"]
        assert set(report["throughput"]) == {"resnet50", "bert"}
        assert report["learning"]["bert, loss"]["error"] < report["learning"]["bert, loss"]["naive_error"]
        assert report["arrivals"]["jobs"] == 48
        assert report["interference"] is None

    def test_faster_gpus_were_measured_as_such(self, model: ClusterModel) -> None:
        fast = ClusterModel.from_bytes(fit(workload(SAMPLES[JSON], spec(speed=2.0)), 0).model)
        for row in STEPS:
            place = Place(*(np.array(value) for value in (row["gpus"], row["nodes"], row["batch"] / row["gpus"])))
            slow, quick = (
                float(seconds(one.throughput, one.positions[row["application"]], place)) for one in (fast, model)
            )
            assert slow == pytest.approx(2 * quick, rel=0.05)

    def test_too_few_steps_are_said(self) -> None:
        body = (
            b'{"samples": [{"execution": "e", "steps": [{"application": "a", "gpus": 1, "batch": 8, "seconds": 1}]}]}'
        )
        with pytest.raises(
            TooLittleData, match="3 measured steps of an application on 2 allocations; has 1 steps of 1"
        ):
            fit(workload(body), 0)


class TestPrediction:
    def test_seconds_and_goodput_of_a_step(self, model: ClusterModel) -> None:
        step = ask(model, application="resnet50", gpus="4", batch="128")["step"]
        assert step.seconds.low < step.seconds.mean < step.seconds.high
        assert step.samples_per_second == pytest.approx(128 / step.seconds.mean)
        assert 0 < step.efficiency < 1
        assert step.goodput == pytest.approx(step.efficiency * step.samples_per_second)
        assert (step.nodes, step.measured) == (1, True)

    def test_beyond_the_largest_batch_seconds_grow_with_it_and_nobody_says_it_was_measured(
        self, model: ClusterModel
    ) -> None:
        largest = max(row["batch"] / row["gpus"] for row in STEPS if row["application"] == "resnet50")
        within, further = (
            ask(model, application="resnet50", gpus="1", batch=str(int(batch)))["step"]
            for batch in (largest, 8 * largest)
        )
        assert (within.measured, further.measured) == (True, False)
        assert further.seconds.mean == pytest.approx(8 * within.seconds.mean)
        assert further.seconds.low <= within.seconds.mean
        assert further.seconds.high / further.seconds.mean > within.seconds.high / within.seconds.mean
        gpus = np.array([[1, 2, 4, 8]])  # decisions ask these, and training plays by them
        steps = Beliefs(model).step_seconds(np.array([0]), np.array([8 * largest]), gpus)[0]
        assert (np.diff(steps) < 0).all()

    def test_what_is_left_of_a_loss_and_of_a_metric(self, model: ClusterModel) -> None:
        left = ask(model, application="bert", loss="1:1.6,2:1.3,3:1.1,4:0.95,5:0.86", until="12")["left"]
        assert left.gain.low < left.gain.mean < left.gain.high
        assert left.level == pytest.approx(0.86, abs=0.1)
        assert left.gain.mean > 0
        rising = ask(model, application="bert", metric="1:0.1,2:0.2,3:0.25,4:0.28", until="12")["left"]
        assert rising.level == pytest.approx(0.28, abs=0.05)

    @pytest.mark.parametrize("name", ["loss", "metric"])
    def test_the_examples_of_curves_are_answered_where_none_are_known(self, model: ClusterModel, name: str) -> None:
        alone = replace(model, curves=ClusterModel.unfitted(Layout(spec())).curves)
        [example] = [one.example for one in PARAMETERS if one.name == name]
        left = ask(alone, application="bert", until="90", **{name: str(example)})["left"]
        assert left.gain.low < left.gain.mean < left.gain.high
        assert not left.measured

    def test_how_far_a_gain_is_off_is_measured_where_nine_jobs_of_the_application_have_ended(
        self, model: ClusterModel
    ) -> None:
        at, values = np.arange(1.0, 7.0), np.array([0.2, 0.4, 0.5, 0.55, 0.58, 0.6])
        ended = [fit_class([Curve(at, values + 0.01 * job) for job in range(jobs)], 0) for jobs in (9, 8)]
        names = ("bert", "resnet50")
        known = replace(model, curves=classes([model.positions[name] for name in names], [True, True], ended))
        curve = "1:0.2,2:0.4,3:0.5,4:0.55"
        reported = [ask(known, application=name, metric=curve, until="6")["left"] for name in names]
        assert [one.measured for one in reported] == [True, False]
        assert reported[0].gain.high - reported[0].gain.low < reported[1].gain.high - reported[1].gain.low

    @pytest.mark.parametrize(
        ("query", "pointer"),
        [
            ({"application": "vgg", "gpus": "1", "batch": "8"}, "/query/application"),
            ({"application": "bert"}, "/query/gpus"),
            ({"application": "bert", "gpus": "1"}, "/query/batch"),
            ({"application": "bert", "gpus": "0", "batch": "8"}, "/query/gpus"),
            ({"application": "bert", "gpus": "2", "batch": "nan"}, "/query/batch"),
            ({"application": "bert", "gpus": "2", "batch": "8", "nodes": "3"}, "/query/nodes"),
            ({"application": "bert", "gpus": "2", "batch": "8", "node_class": "b"}, "/query/node_class"),
            ({"application": "bert", "gpus": "2", "batch": "8", "beside": "vgg"}, "/query/beside"),
            ({"application": "bert", "loss": "1:2", "until": "9"}, "/query/loss"),
            ({"application": "bert", "loss": "1:2,1:3", "until": "9"}, "/query/loss"),
            ({"application": "bert", "loss": "1:2,2", "until": "9"}, "/query/loss"),
            ({"application": "bert", "loss": "1:2,2:1,3:1,4:1"}, "/query/until"),
            ({"application": "bert", "loss": "1:2", "metric": "1:2", "until": "9"}, "/query/loss"),
        ],
    )
    def test_what_cannot_be_asked_names_its_parameter(
        self, model: ClusterModel, query: dict[str, str], pointer: str
    ) -> None:
        with pytest.raises(InvalidInput) as caught:
            ask(model, **query)
        assert caught.value.errors[0].pointer == pointer


class TestInterference:
    def test_a_planted_matrix_is_recovered_within_a_tenth(self) -> None:
        rng = np.random.default_rng(0)
        one, other = rng.integers(0, 3, 90), rng.integers(0, 3, 90)
        log = np.log(MATRIX[one, other]) + rng.normal(0, 0.1, 90)
        result, report = fit_pairs(SharedSteps(one, np.eye(3)[other], log), 3, 0)
        assert_allclose(np.exp(result.log_slowdown), MATRIX, rtol=0.1)
        assert report is not None
        assert report["mape"] < report["naive_mape"]
        middle, low, high = slowdown(result, 1, [2, 1])
        assert middle == pytest.approx(1.9 * 1.2, rel=0.2)
        assert low < middle < high

    def test_it_is_found_in_samples_where_steps_say_who_was_beside(self) -> None:
        rng = np.random.default_rng(1)
        names, rows = ["a", "b", "c"], []
        for place, name in enumerate(names):
            for gpus in (1, 2):
                alone = {"application": name, "gpus": gpus, "batch": 32, "seconds": (place + 1) / gpus}
                rows.append(alone)
                for other in range(3):
                    rows += [
                        alone | {"beside": [names[other]], "seconds": slow * (place + 1) / gpus}
                        for slow in MATRIX[place, other] * np.exp(rng.normal(0, 0.05, 8))
                    ]
            rows.append({"application": name, "gpus": 1, "batch": 64, "seconds": 1.9 * (place + 1)})
        body = json.dumps({"samples": [{"execution": "e", "steps": rows}]}).encode()
        model = ClusterModel.from_bytes(fit(workload(body), 0).model)
        order = [model.positions[name] for name in names]
        assert_allclose(np.exp(model.interference.log_slowdown)[np.ix_(order, order)], MATRIX, rtol=0.1)
        alone = ask(model, application="a", gpus="1", batch="32")["step"].seconds.mean
        both = ask(model, application="a", gpus="1", batch="32", beside="b")["step"]
        assert both.seconds.mean / alone == pytest.approx(1.5, rel=0.1)
        assert both.slowdown == pytest.approx(1.5, rel=0.1)

    def test_pairs_of_who_was_measured_on_one_allocation_only_are_kept(self) -> None:
        def steps(name: str, gpus: int, slow: float = 1.0, *beside: str) -> dict[str, Any]:
            return {"application": name, "gpus": gpus, "batch": 32, "seconds": slow / gpus, "beside": [*beside]}

        rows = [steps("a", gpus) for gpus in (1, 2, 4)] + [steps("resnet18", 1)]
        rows += [one for _ in range(6) for one in (steps("a", 1, 1.5, "resnet18"), steps("resnet18", 1, 1.8, "a"))]
        rows += [steps("unknown", 2, 3.0, "a")]  # nobody knows what it takes alone
        body = json.dumps({"samples": [{"execution": "e", "steps": rows}]}).encode()
        model = ClusterModel.from_bytes(fit(workload(body), 0).model)
        assert (model.applications[:2], model.measured) == (("a", "resnet18"), 1)
        a, member = (model.positions[name] for name in ("a", "resnet18"))
        assert slowdown(model.interference, a, [member])[0] == pytest.approx(1.5, rel=0.05)
        assert slowdown(model.interference, member, [a])[0] == pytest.approx(1.8, rel=0.05)
        beliefs = Beliefs(model, {"resnet18": MEMBER})
        neighbours = beliefs.neighbours(np.array(["resnet18", "a"], object))
        assert neighbours is not None
        np.testing.assert_allclose(slowdowns(neighbours, np.array([[2], [2]])), [1.8, 1.5], rtol=0.05)


def test_arrivals_have_a_course_of_the_day_and_know_how_far_they_stray() -> None:
    rng = np.random.default_rng(3)
    hours = np.arange(24 * 30)
    rate = 10 + 8 * np.sin(2 * np.pi * hours / 24)
    counts = rng.poisson(rate * rng.gamma(10, 0.1, len(hours)))
    time = np.sort(np.repeat(hours, counts) * 3600 + rng.uniform(0, 3600, counts.sum()))
    rows = np.column_stack([time, np.zeros((len(time), 1)), -np.ones(len(time)), np.full((len(time), 4), 2.0)])
    result, report = fit_arrivals([rows], 1, 0)
    assert_allclose(result.rate[0], rate[:24], rtol=0.35, atol=1.0)
    assert result.variation[0] == pytest.approx(0.1, rel=0.4)
    assert report is not None
    assert report["jobs"] == len(rows)


def job_log(hours: float, paces: tuple[float, float], *known: float) -> Floats:
    """Jobs of two queues and applications, one each ``paces`` seconds; ``known``: GPUs, duration and wait of each."""
    each = [np.arange(0.0, hours * 3600, pace) for pace in paces]
    queue = np.repeat([0.0, 1.0], [len(times) for times in each])
    rows = np.full((len(queue), WIDTHS["arrivals"]), np.nan)
    rows[:, TIME], rows[:, QUEUE], rows[:, BY_APPLICATION] = np.concatenate(each), queue, queue
    for column, value in zip((ASKED, DURATION, WAIT), known or (1.0,), strict=False):
        rows[:, column] = value
    return rows[np.argsort(rows[:, TIME], kind="stable")]


def test_jobs_of_each_queue_are_forecast_from_the_longest_log() -> None:
    result, report = forecasts([job_log(1, (1, 1)), NO_JOBS, job_log(5, (60, 200))], ["high", "low"], 0)
    assert {one.name: one.ahead().median.item() for one in deserialise(result)} == pytest.approx({"high": 10, "low": 3})
    assert [one["family"] for one in report["forecasts"]["low"]["horizons"]] == ["last_value"]
    assert report["log_seconds"] == 5 * 3600 - 60
    nothing, report = forecasts([job_log(3, (60, 60))], ["high", "low"], 0)
    assert (len(nothing), report["forecasts"], report["log_seconds"]) == (0, {}, 3 * 3600 - 60)


class TestGpusInUse:
    """The series of GPUs in use, and its forecast."""

    def test_gpus_are_in_use_from_a_jobs_start_to_its_end(self) -> None:
        rows = np.full((4, WIDTHS["arrivals"]), np.nan)
        rows[:, [TIME, QUEUE]] = [[0, 0], [60_000, 1], [61_000, 0], [120_000, 1]]
        rows[:, [ASKED, DURATION, WAIT]] = [[1, 60.0, np.nan], [4, 900.0, 600.0], [2, 300.0, np.nan], [8, 60.0, 0.0]]
        result, reported = gpus_in_use([rows, rows[:2]])
        assert result is not None
        assert (result.start % 600, result.end, reported["intervals"]) == (0, 120_000, len(result.counts))
        counts = dict(zip(result.times.tolist(), result.counts.tolist(), strict=True))
        # 4 GPUs from 60,600 s to 61,500 s, and 2 from 61,000 s to 61,300 s
        assert {at: count for at, count in counts.items() if count} == pytest.approx(
            {60_600: 4 + 2 * 200 / 600, 61_200: 2 + 2 * 100 / 600}
        )

    def test_two_days_of_two_applications_are_forecast_and_the_beginning_is_left_out(self) -> None:
        """Each half of the day one application asks for more; at any time 6 jobs of each run."""
        rows = job_log(48, (600, 600), 1.0, 3_600.0, 1_800.0)
        day = rows[:, TIME] % 86_400 < 43_200
        rows[:, ASKED] = np.where(rows[:, BY_APPLICATION] == 0, np.where(day, 8, 2), 3)
        series, _ = gpus_in_use([rows])
        assert series is not None
        assert series.start == 5_400  # when what waited and ran before the log has ended
        assert series.counts[:3].tolist() == pytest.approx([66] * 3)
        assert series.counts[series.times == 84_000].tolist() == pytest.approx([30])
        result, report = forecasts([rows, job_log(1, (60, 60), 1.0, 60.0)], ["high", "low"], 0)
        known = {one.name: one for one in deserialise(result)}
        assert list(known) == ["high", "low", GPUS_IN_USE] == list(report["forecasts"])
        assert report["gpus_in_use"] == {"jobs": 576, "durations": 576, "intervals": 278, "lacking": None}
        reported = known[GPUS_IN_USE]
        assert reported.horizons == (1, 6)
        expected = reported.ahead()
        assert expected.median[0] == pytest.approx(30, abs=3)  # 6 · (2 + 3)
        assert (expected.low <= expected.median).all()
        assert all(0.5 <= one["coverage"] <= 1 for one in report["forecasts"][GPUS_IN_USE]["horizons"])

    @pytest.mark.parametrize(
        ("log", "lacking"),
        [
            (NO_JOBS, "durations of 90% of the jobs of a log"),
            (job_log(48, (600, 600)), "durations of 90% of the jobs of a log"),
            (job_log(5, (60, 60), 1.0, 7_200.0), "24 intervals of 600 seconds"),
            (job_log(3, (60, 60), 1.0, 0.0), "24 intervals of 600 seconds"),
        ],
    )
    def test_too_little_data_is_told(self, log: Floats, lacking: str) -> None:
        result, report = forecasts([log], ["high", "low"], 0)
        assert report["gpus_in_use"]["lacking"] == lacking
        assert GPUS_IN_USE not in report["forecasts"]
        assert all(one.name != GPUS_IN_USE for one in (deserialise(result) if len(result) else ()))

    def test_a_log_with_durations_is_taken_before_a_longer_one_without(self) -> None:
        series, reported = gpus_in_use([job_log(90, (60, 60)), job_log(9, (600, 600), 2.0, 1_200.0)])
        assert series is not None
        assert (reported["jobs"], series.counts[-1]) == (108, pytest.approx(8))

    def test_a_queue_of_that_name_keeps_it(self) -> None:
        result, report = forecasts([job_log(9, (60, 200), 1.0, 600.0)], ["high", GPUS_IN_USE], 0)
        assert {one.name: one.ahead().median[0] for one in deserialise(result)} == pytest.approx(
            {"high": 10, GPUS_IN_USE: 3}
        )
        assert report["gpus_in_use"]["lacking"] == "another name for the queue gpus-in-use"


def test_a_forecast_of_what_was_counted_lately_is_seen_and_an_old_one_is_not(model: ClusterModel) -> None:
    now, layout = 1_000_000.0, Layout(spec())
    plain = Snapshot("w", "x", 1, layout.spec, layout, model, 1, None, None, 1)
    beliefs = Beliefs(model)
    usual = Compiled(plain).coming(beliefs, now)
    for known_until, expected in ((now - 900.0, 50 * float(beliefs.mean_asked[0])), (now - 7_200.0, usual)):
        reported = Compiled(replace(plain, coming={"q0": NextHour(known_until, 50.0)}))
        assert reported.coming(beliefs, now) == pytest.approx(expected)
    assert Compiled(replace(plain, coming={"other": NextHour(now, 50.0)})).coming(beliefs, now) == usual
