"""Executions of kind ``cluster``: read, kept, told and handed out."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from safetensors.numpy import load

from app.kinds.cluster.example import SAMPLES
from app.kinds.cluster.kind import KIND
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.run_samples import steps
from app.kinds.cluster.samples import (
    BATCH,
    BESIDE,
    COMPUTING,
    DURATION,
    ITERATION,
    MOST_NAMES,
    NODES,
    QUEUE,
    TIME,
    VALUE,
    WAIT,
    ClusterSamples,
    Content,
)
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.contract.inputs import InvalidInput, Refused, Sample
from app.kinds.records import CSV, JSON, NDJSON

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = "application,gpus,batch,seconds\nresnet,4,256,0.5\nbert,8,64,1.25\n"
CURVES = "job,iteration,loss\na,1,2.5\nb,1,3\na,2,1.5\n"
ARRIVALS = "time,gpus,queue\n0.5,4,urgent\n0.5,1,\n60,2,batch\n"


def layout(classes: int = 1) -> Layout:
    nodes = [{"name": f"n{number}", "count": 4, "gpus": 4} for number in range(classes)]
    queues = [{"name": "urgent"}, {"name": "batch"}]
    return Layout(ClusterSpec.model_validate({"name": "x", "kind": "cluster", "nodes": nodes, "queues": queues}))


def read(body: str, media: str = CSV, of: Layout | None = None, name: str | None = "x") -> Sample | Refused:
    """The one execution of a body, given in lines."""
    codec = ClusterSamples(of or layout())
    [result] = codec.formats[media].reader(codec, name).read(iter(body.encode().split(b"\n")))
    return result


def sound(body: str, media: str = CSV, of: Layout | None = None, name: str | None = "x") -> Sample:
    result = read(body, media, of, name)
    assert isinstance(result, Sample)
    return result


def content(body: str, media: str = CSV, of: Layout | None = None) -> Content:
    return ClusterSamples(of or layout()).unpack(sound(body, media, of).data)


def stored(sample: Sample) -> Any:
    return SimpleNamespace(
        name=sample.execution,
        source="upload",
        iterations=sample.iterations,
        data=sample.data,
        created_at=NOW,
        summary=sample.summary,
    )


class TestWhatIsKept:
    def test_a_wait_is_kept_and_a_log_without_any_is_stored_as_before_there_were_waits(self) -> None:
        body = "time,gpus,queue,duration,wait\n0,4,urgent,60,30\n5,1,batch,90,\n"
        codec, sample = ClusterSamples(layout()), sound(body)
        assert_equal(codec.unpack(sample.data).arrivals[:, WAIT], [30.0, np.nan])
        assert [row.get("wait") for row in codec.rows(sample.data)] == [30.0, None]
        old = sound(body.replace(",30\n", ",\n"))
        assert load(old.data)["arrivals"].shape == (2, WAIT)
        assert old.digest == sound(body.replace(",wait", "").replace(",30\n", "\n").replace("90,", "90")).digest
        assert_equal(codec.unpack(old.data).arrivals[:, DURATION:], [[60, np.nan, np.nan], [90, np.nan, np.nan]])

    def test_steps_are_packed_on_nodes_unless_they_say_otherwise(self) -> None:
        reported = content(STEPS)
        assert reported.applications == ("resnet", "bert")
        assert_array_equal(reported.steps[:, NODES], [1, 2])
        assert_array_equal(reported.steps[:, BATCH], [256, 64])
        assert np.isnan(reported.steps[:, COMPUTING]).all()
        assert (reported.steps[:, BESIDE:] == -1).all()

    def test_curves_may_be_interleaved_and_know_which_way_is_better(self) -> None:
        reported = content(CURVES)
        assert reported.jobs == ("a", "b")
        assert_array_equal(reported.curves[:, [0, ITERATION, VALUE]], [[0, 1, 2.5], [1, 1, 3], [0, 2, 1.5]])
        rising = content("job,iteration,metric\na,1,0.5\n")
        assert (reported.curves[:, 4] == 0).all()
        assert (rising.curves[:, 4] == 1).all()

    def test_jobs_without_a_queue_are_of_the_least_urgent(self) -> None:
        reported = content(ARRIVALS)
        assert_array_equal(reported.arrivals[:, TIME], [0.5, 0.5, 60])
        assert_array_equal(reported.arrivals[:, QUEUE], [0, 1, 1])

    def test_times_may_be_timestamps(self) -> None:
        reported = content("time,gpus\n2026-01-31T12:00:00Z,1\n2026-01-31T12:00:01.5Z,1\n")
        assert_allclose(np.diff(reported.arrivals[:, TIME]), 1.5)

    def test_neighbours_are_named_in_csv_and_json_alike(self) -> None:
        rows = "application,gpus,batch,seconds,beside\na,1,8,1,b;c\nb,1,8,1,\n"
        lines = [
            {"application": "a", "gpus": 1, "batch": 8, "seconds": 1, "beside": ["b", "c"]},
            {"application": "b", "gpus": 1, "batch": 8, "seconds": 1},
        ]
        assert_equal(content(rows), content("\n".join(map(json.dumps, lines)), NDJSON))
        assert_array_equal(content(rows).steps[:, BESIDE:], [[1, 2, -1, -1], [-1] * 4])

    def test_one_body_may_hold_rows_of_each_form(self) -> None:
        body = "application,gpus,batch,seconds,job,iteration,loss,time\na,1,8,1,,,,\n,,,,j,1,2,\n,2,,,,,,5\n"
        reported = content(body)
        assert [len(part) for part in reported[2:]] == [1, 1, 1]

    def test_an_execution_without_a_name_is_called_by_its_content(self) -> None:
        assert (
            sound(STEPS, name=None).execution == sound(STEPS, name=None).execution != sound(CURVES, name=None).execution
        )

    @given(st.data())
    def test_whatever_is_exported_reads_back(self, data: st.DataObject) -> None:
        numbers = st.floats(1e-6, 1e6)
        steps = st.fixed_dictionaries(
            {
                "application": st.sampled_from(["a", 'b"', "c,d", "é", "=1+1", "'@a"]),
                "gpus": st.integers(4, 16),
                "nodes": st.just(4),
                "batch": numbers,
                "seconds": numbers,
                "beside": st.lists(st.sampled_from(["a", "c,d", "-d"]), max_size=4),
            }
        )
        points = st.lists(numbers, max_size=5).map(
            lambda values: [{"job": "j", "iteration": i, "metric": value} for i, value in enumerate(values)]
        )
        rows = data.draw(st.lists(steps, min_size=1, max_size=5)) + data.draw(points)
        sample = sound("\n".join(map(json.dumps, rows)), NDJSON)
        codec = ClusterSamples(layout())
        for media, how in codec.exports.items():
            again = sound((how.head(codec) + "".join(how.body(codec, stored(sample)))).rstrip("\n"), media)
            assert again.digest == sample.digest


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("body", "pointer", "message"),
        [
            (STEPS.replace("0.5", "-1"), "/lines/2/seconds", "greater than 0"),
            (STEPS.replace("resnet,4", "resnet,4.5"), "/lines/2/gpus", "whole number"),
            (STEPS.replace("bert,8,64", "bert,8,x"), "/lines/3/batch", "greater than 0"),
            (STEPS.replace("bert", ""), "/lines/3/application", "printable"),
            (STEPS.replace("seconds", "minutes"), "/lines/1/minutes", "unknown column"),
            ("application,gpus,nodes,batch,seconds\na,2,3,1,1\n", "/lines/2/nodes", "1 to gpus"),
            ("application,gpus,batch,seconds,computing\na,2,3,1,2\n", "/lines/2/computing", "at most seconds"),
            ("application,gpus,batch,seconds,node_class\na,2,3,1,n9\n", "/lines/2/node_class", "known: n0"),
            ("application,gpus,batch,seconds,beside\na,2,3,1,b;;c\n", "/lines/2/beside", "at most 4 names"),
            ("application,gpus,batch,seconds,beside\na,2,3,1,b;c;d;e;f\n", "/lines/2/beside", "at most 4 names"),
            ("application,gpus,nodes,batch,seconds\na,64,1,3,1\n", "/lines/2/nodes", "at least gpus / 4"),
            ("application,gpus,batch,seconds\na,2,3,1e-12\n", "/lines/2/seconds", "at least 0.000001"),
            (CURVES.replace("a,2", "a,1"), "/lines/4/iteration", "must be more than 1"),
            (CURVES.replace("a,2,1.5", "a,2,nan"), "/lines/4/loss", "must be a number"),
            ("job,iteration,loss,metric\na,1,1,1\n", "/lines/2/metric", "one of them"),
            ("job,iteration,loss,metric\na,1,1,\na,2,,1\n", "/lines/3/metric", "rows of its job before"),
            ("job,iteration,loss,application\na,1,1,r\na,2,1,q\n", "/lines/3/application", "rows of its job before"),
            (ARRIVALS.replace("60", "0.25"), "/lines/4/time", "not be less"),
            (ARRIVALS.replace("batch", "slow"), "/lines/4/queue", "known: urgent, batch"),
            ("time,gpus,seconds\n1,1,\n1,1,4\n", "/lines/3", "must say"),
            ("time,gpus,loss\n1,1,3\n", "/lines/2/loss", "does not belong"),
            ("time,data\n1,1\n", "/lines/1", "must say"),
        ],
    )
    def test_its_line_field_and_what_is_accepted_are_named(self, body: str, pointer: str, message: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            read(body)
        assert caught.value.errors[0].pointer == pointer
        assert message in caught.value.errors[0].message

    def test_a_node_class_must_be_said_where_there_are_several(self) -> None:
        with pytest.raises(InvalidInput, match="node class"):
            read(STEPS, of=layout(2))

    def test_json_names_the_place_in_the_execution_and_keeps_the_others(self) -> None:
        good = {"execution": "a", "arrivals": [{"time": 1, "gpus": 2}]}
        bad = {"execution": "b", "arrivals": [{"time": 1, "gpus": 2}, {"time": 0, "gpus": 2}]}
        codec = ClusterSamples(layout())
        body = json.dumps({"samples": [good, bad]}).encode()
        first, second = codec.formats[JSON].reader(codec, None).read(iter([body]))
        assert isinstance(first, Sample)
        assert isinstance(second, Refused)
        assert second.issue.pointer == "/arrivals/1/time"

    def test_nothing_is_no_execution(self) -> None:
        with pytest.raises(InvalidInput, match="holds nothing"):
            read("application,gpus,batch,seconds\n")


def test_a_listing_tells_what_it_comes_to() -> None:
    codec = ClusterSamples(layout())
    [sample] = codec.formats[JSON].reader(codec, None).read(iter([SAMPLES[JSON]]))
    assert isinstance(sample, Sample)
    reported = codec.read(stored(sample), reports=True)
    assert reported.steps is not None
    assert reported.curves is not None
    assert reported.arrivals is not None
    assert (reported.steps.count, reported.curves.jobs, reported.arrivals.count) == (48, 6, 48)
    assert reported.arrivals.of_queues == {"urgent": 0, "batch": 48}
    assert reported.iterations == 48 + 72 + 48
    assert codec.summary(sample.data) == sample.summary


def test_a_run_becomes_arrivals_steps_and_curves() -> None:
    reports = [
        {"at": 5.0, "submitted": [{"job": "a", "gpus": 4, "queue": "urgent", "application": "r", "batch": 64}]},
        {"at": 9.0, "submitted": [{"job": "b", "gpus": 1, "at": 4.0}]},
        {"at": 60.0, "progressed": [{"job": "a", "iteration": 10, "loss": 2.0, "seconds": 0.5, "gpus": 4}]},
        {"at": 120.0, "progressed": [{"job": "a", "iteration": 5, "loss": 9.0}, {"job": "b", "iteration": 2}]},
        {"at": 150.0, "progressed": [{"job": "a", "iteration": 9, "seconds": 0.8, "gpus": 4, "beside": ["s", "r"]}]},
        {"at": 180.0, "progressed": [{"job": "a", "iteration": 20, "loss": 1.0}]},
    ]
    codec = ClusterSamples(layout())
    sample = codec.of_run("run", reports)
    assert sample is not None
    reported = codec.unpack(sample.data)
    assert_array_equal(reported.arrivals[:, :2], [[4, 1], [5, 0]])
    assert_array_equal(reported.curves[:, [ITERATION, VALUE]], [[10, 2], [20, 1]])
    assert reported.applications == ("r", "s")
    assert_array_equal(reported.steps[:, BESIDE : BESIDE + 2], [[-1, -1], [1, 0]])
    assert codec.of_run("run", [{"at": 1.0}]) is None


def test_a_step_of_a_member_needs_no_batch_size() -> None:
    on = {"job": "a", "iteration": 1, "seconds": 0.5, "gpus": 4, "beside": ["r"]}
    reports = [{"at": 1.0, "submitted": [{"job": "a", "gpus": 4, "application": "m"}]}, {"at": 2.0, "progressed": [on]}]
    assert not steps(reports)
    (row,) = steps(reports, ["m"])
    assert (row["application"], row["batch"], row["seconds"], row["beside"]) == ("m", 4, 0.5, ["r"])


@pytest.mark.parametrize(
    ("wrong", "rows"),
    [
        ({"application": "r;s"}, 2),
        ({"application": "r\n"}, 2),
        ({"computing": 0.9}, 3),
        ({"nodes": 9}, 3),
        ({"beside": ["r;s"]}, 2),
        ({"seconds": 1e12, "computing": 1.0}, 2),
        ({"seconds": 1e16}, 2),
        ({"iteration": 1e10}, 2),
        ({"job": "a\t"}, 2),
    ],
)
def test_what_of_a_run_cannot_be_a_sample_is_left_out_and_nothing_is_refused(wrong: dict[str, Any], rows: int) -> None:
    reported: dict[str, Any] = {
        "job": "a",
        "gpus": 4,
        "application": "r",
        "batch": 64,
        "iteration": 1,
        "seconds": 0.5,
        "loss": 2.0,
    } | wrong
    named = ("job", "gpus", "application", "batch", "data"), ("job", "iteration", "seconds", "gpus", "loss", "nodes")
    came, on = ({name: reported[name] for name in names if name in reported} for names in named)
    on |= {name: reported[name] for name in ("computing", "beside") if name in reported}
    reports = [{"at": 1.0, "submitted": [came]}, {"at": 2.0, "progressed": [on]}]
    if reported["seconds"] < 1e9:  # more was taken once, and is stored
        for report in reports:
            KIND.engine.decode(json.dumps(report).encode())  # the service takes it
    sample = ClusterSamples(layout()).of_run("run", reports)
    assert sample is not None
    assert sample.iterations == rows


def test_a_run_of_many_jobs_and_of_jobs_that_tell_losses_and_metrics_becomes_a_sample() -> None:
    names = [f"j{number}" for number in range(MOST_NAMES + 1)]
    on = [{"job": name, "iteration": 1, "loss": 1.0} for name in names]
    both = [{"job": "j0", "iteration": 2, "metric": 0.5}, {"job": "j0", "iteration": 3, "loss": 0.5}]
    came = [{"job": name, "gpus": 1} for name in names]
    codec = ClusterSamples(layout())
    sample = codec.of_run("run", [{"at": 1.0, "submitted": came}, {"at": 2.0, "progressed": [*on, *both]}])
    assert sample is not None
    reported = codec.unpack(sample.data)
    assert (len(reported.arrivals), len(reported.curves), len(reported.jobs)) == (
        len(names),
        len(names) + 1,
        len(names),
    )


def test_a_long_log_is_read_in_little_more_than_it_takes_to_keep() -> None:
    def blocks() -> Iterator[bytes]:
        yield b"time,gpus"
        for start in range(0, 100_000, 1_000):
            yield b"\n".join(b"%d,4" % time for time in range(start, start + 1_000))

    codec = ClusterSamples(layout())
    tracemalloc.start()
    [sample] = codec.formats[CSV].reader(codec, "x").read(blocks())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(sample, Sample)
    assert sample.iterations == 100_000
    assert peak < 6 * len(sample.data)
