"""Executions of kind ``inference``: read, kept, told and handed out."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal, assert_equal

from app.kinds.contract.inputs import InvalidInput, Refused, Sample
from app.kinds.inference.layout import Layout
from app.kinds.inference.samples import Content, InferenceSamples
from app.kinds.records import CSV, JSON, NDJSON
from tests.app.kinds.inference.workloads import layout, single

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LOG = "time,user\n0.5,web\n0.75,mobile\n0.75,web\n"
BATCHES = "variant,batch,server,cores,seconds\nsmall,1,cpu,,0.02\nlarge,8,big-cpu,6,0.3\n"
TIMES = st.lists(st.integers(0, 4_000_000_000_000_000), max_size=30).map(sorted)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["small", "large"]),
        st.integers(1, 8),
        st.sampled_from(["cpu", "big-cpu"]),
        st.floats(0.1, 64),
        st.floats(1e-6, 1e3),
    ),
    max_size=20,
)


def read(body: str, media: str = CSV, of: Layout | None = None, name: str | None = "x") -> Sample | Refused:
    """The one execution of a body, given in lines."""
    codec = InferenceSamples(of or layout())
    [result] = codec.formats[media].reader(codec, name).read(iter(body.encode().split(b"\n")))
    return result


def sound(body: str, media: str = CSV, of: Layout | None = None, name: str | None = "x") -> Sample:
    result = read(body, media, of, name)
    assert isinstance(result, Sample)
    return result


def content(body: str, media: str = CSV, of: Layout | None = None) -> Content:
    return InferenceSamples(of or layout()).unpack(sound(body, media, of).data)


def stored(sample: Sample) -> Any:
    return SimpleNamespace(
        name=sample.execution,
        source="upload",
        iterations=sample.iterations,
        data=sample.data,
        created_at=NOW,
        summary=sample.summary,
    )


def exported(sample: Sample, media: str) -> str:
    codec = InferenceSamples(layout())
    how = codec.exports[media]
    return how.head(codec) + "".join(how.body(codec, stored(sample)))


class TestReading:
    """What is read of bodies."""

    def test_a_log_is_microseconds_and_users(self) -> None:
        log = content(LOG).requests
        assert_array_equal(log.time, [500_000, 750_000, 750_000])
        assert_array_equal(log.user, [0, 1, 0])
        assert np.isnan(log.size).all()

    def test_batches_are_positions_and_numbers_and_cores_those_of_the_class_where_they_are_missing(self) -> None:
        assert_array_equal(content(BATCHES).batches, [[0, 1, 0, 4, 0.02], [1, 8, 1, 6, 0.3]])

    def test_what_there_is_one_of_need_not_be_said(self) -> None:
        assert_array_equal(content("time\n1\n2\n", of=single()).requests.user, [0, 0])
        table = content("variant,batch,seconds\nsmall,2,0.1", of=single()).batches
        assert_array_equal(table, [[0, 2, 0, 4, 0.1]])

    @pytest.mark.parametrize("text", ["2023-11-16 18:17:03.9799600", "2023-11-16T18:17:03.979960Z"])
    def test_times_may_be_timestamps(self, text: str) -> None:
        assert content(f"time,user\n{text},web").requests.time == [1_700_158_623_979_960]

    def test_every_format_says_the_same(self) -> None:
        lines = [{"time": 0.5, "user": "web"}, {"time": 0.75, "user": "mobile"}, {"time": 0.75, "user": "web"}]
        batch = {"variant": "large", "batch": 8, "server": "big-cpu", "cores": 6, "seconds": 0.3}
        ndjson = sound("\n".join(map(json.dumps, [*lines, batch])), NDJSON)
        body = json.dumps({"samples": [{"execution": "x", "requests": lines, "batches": [batch]}]})
        rows = LOG.replace("\n", ",,,,\n").replace("time,user,,,,", "time,user,variant,batch,server,seconds,cores")
        rows = rows.replace("web,,,,", "web,,,,,").replace("mobile,,,,", "mobile,,,,,") + ",,large,8,big-cpu,0.3,6"
        assert ndjson.digest == sound(body, JSON).digest == sound(rows).digest

    def test_an_execution_that_nobody_named_is_called_by_its_content(self) -> None:
        assert sound(LOG, name=None).execution == sound(LOG.replace("0.5", "0.50"), name=None).execution
        assert sound(LOG, name=None).execution != sound(LOG.replace("0.5", "0.51"), name=None).execution

    def test_blank_lines_quotes_byte_order_marks_and_carriage_returns_are_taken(self) -> None:
        body = '\ufefftime,"user"\r\n\r\n0.5,"web"\r\n0.75,mobile\r\n0.75,web\r\n\r\n'
        assert sound(body).digest == sound(LOG).digest

    def test_how_a_log_is_cut_into_blocks_changes_nothing(self) -> None:
        codec = InferenceSamples(layout())
        reader = codec.formats[CSV].reader(codec, "x")
        [whole] = reader.read(iter([LOG.strip().encode()]))
        assert isinstance(whole, Sample)
        assert whole.digest == sound(LOG).digest


class TestRefusing:
    """Errors with the line or pointer, what would be accepted, and the value."""

    @pytest.mark.parametrize(
        ("body", "pointer", "message"),
        [
            ("time,user\n1,web\n0.5,web", "/lines/3/time", "must not be less than the time before it"),
            ("time,user\n-1,web", "/lines/2/time", "must be seconds, 0 or more"),
            ("time,user\nnan,web", "/lines/2/time", "must be seconds"),
            ("time,user\ninf,web", "/lines/2/time", "must be seconds"),
            ("time,user\n1_0,web", "/lines/2/time", "must be seconds"),
            ("time,user\nsoon,web", "/lines/2/time", "must be seconds"),
            ("time,user\n,web", "/lines/2/time", "must be seconds"),
            ("time,user\n2023-13-01T00:00:00Z,web", "/lines/2/time", "must be seconds"),
            ("time,user\n1,web\n\n2,nobody", "/lines/4/user", "unknown user; known: web, mobile"),
            ("time\n1", "/lines/2/user", "unknown user"),
            ("time,user,size\n1,web,-2", "/lines/2/size", "must be at least 0, at most 1000000000"),
            ("time,user\n1,web,3", "/lines/2", "must have 2 cells"),
            ("variant,batch,server,seconds\ntiny,1,cpu,1", "/lines/2/variant", "unknown variant; known: small, large"),
            ("variant,batch,server,seconds\nsmall,9,cpu,1", "/lines/2/batch", "must be a whole number, 1 to 8"),
            ("variant,batch,server,seconds\nsmall,1.5,cpu,1", "/lines/2/batch", "must be a whole number"),
            ("variant,batch,server,seconds\nsmall,1,tpu,1", "/lines/2/server", "unknown server class"),
            ("variant,batch,server,seconds\nsmall,1,cpu,0", "/lines/2/seconds", "must be greater than 0"),
            ("variant,batch,server,seconds\nsmall,1,cpu,NaN", "/lines/2/seconds", "must be greater than 0"),
            ("variant,batch,server,cores,seconds\nsmall,1,cpu,0,1", "/lines/2/cores", "must be greater than 0"),
            ("time,user,variant,batch,seconds\n1,web,small,1,1", "/lines/2/variant", "must say time"),
            ("time,colour\n1,red", "/lines/1/colour", "unknown column"),
            ("time,time\n1,1", "/lines/1/time", "column given twice"),
            ("variant,batch\nsmall,1", "/lines/1", "rows must say time"),
            ("time,user\n", "", "holds nothing"),
            ("", "/lines/1", "the body is empty"),
        ],
    )
    def test_a_body_is_refused_with_its_line(self, body: str, pointer: str, message: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            read(body)
        assert caught.value.errors[0].pointer == pointer
        assert caught.value.errors[0].message.startswith(message)

    @pytest.mark.parametrize(
        ("line", "pointer"),
        [
            ('{"time": "late"}', "/lines/2/time"),
            ('{"time": NaN, "user": "web"}', "/lines/2/time"),
            ('{"time": 1e400, "user": "web"}', "/lines/2/time"),
            ('{"time": true, "user": "web"}', "/lines/2/time"),
            ('{"colour": 1}', "/lines/2"),
            ("{", "/lines/2"),
            ("[" * 100_000, "/lines/2"),
            ("{}", "/lines/2/variant"),
            ('{"time": 2, "seconds": 1}', "/lines/2/seconds"),
            ('{"time": 0, "user": "web"}', "/lines/2/time"),
            ('{"time": 2, "user": null, "user": "web"}', "/lines/2/user"),
        ],
    )
    def test_a_line_of_json_is_refused_with_its_number(self, line: str, pointer: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            read('{"time": 1, "user": "web"}\n' + line, NDJSON)
        assert caught.value.errors[0].pointer.rstrip("/") == pointer

    @pytest.mark.parametrize(
        ("execution", "pointer"),
        [
            (
                {"execution": "x", "requests": [{"time": 1, "user": "web"}, {"time": 0, "user": "web"}]},
                "/requests/1/time",
            ),
            ({"execution": "x", "batches": [{"variant": "small", "batch": 1, "seconds": 1}]}, "/batches/0/server"),
            ({"execution": "x", "batches": [{"variant": "small"}]}, "/batches/0"),
            ({"execution": ""}, "/execution"),
            ({"execution": "x"}, ""),
        ],
    )
    def test_an_execution_in_json_is_refused_with_a_pointer(self, execution: Any, pointer: str) -> None:
        result = read(json.dumps({"samples": [execution]}), JSON)
        assert isinstance(result, Refused)
        assert result.issue.pointer == pointer

    def test_order_is_kept_between_blocks_and_no_more_than_twenty_errors_are_told(self) -> None:
        codec = InferenceSamples(layout())
        blocks = [b"time,user", b"5,web", b"\n".join([b"4,web"] * 50)]
        with pytest.raises(InvalidInput) as caught:
            list(codec.formats[CSV].reader(codec, "x").read(iter(blocks)))
        assert [issue.pointer for issue in caught.value.errors] == ["/lines/3/time"]
        blocks[2] = b"\n".join([b"6,nobody"] * 50)
        with pytest.raises(InvalidInput) as caught:
            list(codec.formats[CSV].reader(codec, "x").read(iter(blocks)))
        assert len(caught.value.errors) == 20


class TestKeeping:
    """Stored bytes, summaries, exports, runs."""

    @given(TIMES, st.data(), ROWS)
    def test_what_was_said_is_kept_and_exported_reads_back_the_same(
        self, times: list[int], data: st.DataObject, rows: list[tuple[str, int, str, float, float]]
    ) -> None:
        users = data.draw(st.lists(st.sampled_from(["web", "mobile"]), min_size=len(times), max_size=len(times)))
        sizes = data.draw(st.lists(st.none() | st.floats(0, 1e9), min_size=len(times), max_size=len(times)))
        requests = [
            {"time": time / 1e6, "user": user, "size": size}
            for time, user, size in zip(times, users, sizes, strict=True)
        ]
        batches = [dict(zip(("variant", "batch", "server", "cores", "seconds"), row, strict=True)) for row in rows]
        body = json.dumps({"samples": [{"execution": "x", "requests": requests, "batches": batches}]})
        if not times and not rows:
            assert isinstance(read(body, JSON), Refused)
            return
        sample = sound(body, JSON)
        selection = InferenceSamples(layout()).unpack(sample.data)
        assert_array_equal(selection.requests.time, times)
        assert_array_equal(selection.requests.size, [np.nan if size is None else size for size in sizes])
        assert_array_equal(selection.batches[:, 3:], np.reshape([row[3:] for row in rows], (-1, 2)))
        for media in (CSV, NDJSON):
            again = sound(exported(sample, media), media)
            assert (again.digest, again.iterations) == (sample.digest, len(times) + len(rows))
            assert_equal(InferenceSamples(layout()).unpack(again.data), selection)

    def test_a_log_is_told_by_users_and_span(self) -> None:
        reported = InferenceSamples(layout()).read(stored(sound(LOG.replace("0.5,", "0.25,"))), reports=False)
        assert reported.requests is not None
        assert reported.requests.of_users == {"web": 2, "mobile": 1}
        assert (reported.requests.count, reported.requests.start, reported.requests.span_seconds) == (3, 0.25, 0.5)
        assert (reported.batches, reported.iterations, reported.seconds) == (None, 3, 0.5)

    def test_batches_are_told_by_number_and_seconds(self) -> None:
        reported = InferenceSamples(layout()).read(stored(sound(BATCHES)), reports=False)
        assert reported.batches is not None
        assert (reported.batches.count, reported.requests) == (2, None)
        assert reported.batches.seconds == pytest.approx(0.32)

    def test_a_run_leaves_its_arrivals_in_order_and_the_batches_that_it_measured(self) -> None:
        reports = [
            {"at": 1.0, "arrived": [{"user": "web", "at": 0.9}, {"user": "mobile", "id": "r", "at": 0.2}]},
            {"at": 2.0, "finished": [{"server": "big-cpu-0", "at": 1.5}]},
            {
                "at": 3.0,
                "arrived": [{"user": "web", "at": 2.5}],
                "finished": [{"server": "big-cpu-0", "at": 2.5, "variant": "large", "batch": 2, "seconds": 0.4}],
            },
        ]
        codec = InferenceSamples(layout())
        sample = codec.of_run("r", reports)
        assert sample is not None
        selection = codec.unpack(sample.data)
        assert_array_equal(selection.requests.time, [200_000, 900_000, 2_500_000])
        assert_array_equal(selection.requests.user, [1, 0, 0])
        assert_array_equal(selection.batches, [[1, 2, 1, 8, 0.4]])
        assert codec.of_run("r", [{"at": 1.0}]) is None

    @pytest.mark.parametrize(
        ("body", "text"),
        [
            ("variant,batch,server,seconds\nsmall,1,cpu,1e30", "/seconds: must be greater than 0, at most 1000000000"),
            ("time,user\n1e30,web", "must be seconds, 0 or more, at most 4000000000"),
            ("", "/lines/1: the body is empty; its first line must name columns of time, user"),
        ],
    )
    def test_what_is_refused_is_told_with_the_largest_that_is_accepted(self, body: str, text: str) -> None:
        with pytest.raises(InvalidInput, match=re.escape(text)):
            read(body)

    def test_a_run_leaves_out_what_no_sample_can_hold(self) -> None:
        measured: dict[str, Any] = {"server": "cpu-0", "variant": "small", "batch": 1, "seconds": 0.4}
        beyond: list[dict[str, Any]] = [{"seconds": 2e9}, {"variant": "gone"}, {"batch": 2_000}, {"server": "gone-0"}]
        report: dict[str, Any] = {
            "at": 1e15,
            "arrived": [
                {"user": user, "at": at} for user, at in (("web", 1), ("gone", 2), ("web", 4e9), ("web", 5e10))
            ],
            "finished": [{"at": 4 + i, **measured, **changed} for i, changed in enumerate([{}, *beyond])],
        }
        codec = InferenceSamples(layout(servers=[{"name": "cpu", "maximum": 1, "cores": 1e10}]))
        sample = codec.of_run("r", [report])
        assert sample is not None
        selection = codec.unpack(sample.data)
        assert_array_equal(selection.requests.time, [1_000_000, 4_000_000_000_000_000])
        assert_array_equal(selection.batches, [[0, 1, 0, 1e10, 0.4]])
        assert codec.of_run("r", [{"at": 5e10, "arrived": report["arrived"][-1:]}]) is None

    def test_a_run_that_says_when_batches_began_has_measured_them_unless_a_variant_was_loaded_before(self) -> None:
        begun = [("large", 2, 1.0), ("large", 4, 2.0), ("small", 1, 3.0), ("small", 1, 4.0)]
        started = [
            {"server": "cpu-1", "user": "web", "variant": variant, "batch": batch, "at": at}
            for variant, batch, at in begun
        ]
        finished = [{"server": "cpu-1", "at": at} for at in (1.5, 2.75, 3.25)]
        codec = InferenceSamples(layout())
        sample = codec.of_run("r", [{"at": 3.0, "started": started}, {"at": 4.0, "finished": finished}])
        assert sample is not None
        assert_array_equal(codec.unpack(sample.data).batches, [[1, 4, 0, 4, 0.75]])

    @pytest.mark.slow
    def test_a_log_of_hundreds_of_thousands_of_lines_is_read_in_a_few_megabytes(self) -> None:
        lines, blocks = 4_000, 60

        def body() -> Iterator[bytes]:
            yield b"time,user"
            for block in range(blocks):
                yield b"\n".join(b"%d.%06d,web" % (block * lines + i, i * 7919 % 10**6) for i in range(lines))

        codec = InferenceSamples(layout())
        tracemalloc.start()
        [result] = codec.formats[CSV].reader(codec, "x").read(body())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert isinstance(result, Sample)
        assert result.iterations == lines * blocks
        assert len(result.data) < 5 * result.iterations
        assert peak < 12e6
