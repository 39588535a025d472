"""Batch logs in Standard Workload Format: what is read, what is said of it, and what is refused."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from app.kinds.contract.inputs import InvalidInput
from app.kinds.workflow.formats.reading import Reading
from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.formats.writing import swf_omits, write_swf
from app.kinds.workflow.trace import Trace
from tests.app.kinds.workflow.traces import logs, same

HEADER = ["; Version: 2.2", "; Computer: Toy", "; UnixStartTime: 1000000000", "; MaxProcs: 64", ";"]


def job(number: int = 1, **values: float | str) -> str:
    """A line; what is not given is an ordinary value."""
    cells: dict[str, float | str] = {
        "job": number, "submit": 10 * number, "wait": 5, "runtime": 100, "allocated": 4, "cpu": -1, "used_memory": 2000,
        "processors": 4, "estimate": 200, "memory": 5000, "status": 1, "user": 7, "group": 1, "executable": -1,
        "queue": 1, "partition": -1, "preceding": -1, "think": -1,
    }  # fmt: skip
    assert values.keys() <= cells.keys()
    return " ".join(str(value) for value in (cells | values).values())


def read(*rows: str, **options: bool) -> Reading:
    return read_swf([*HEADER, *rows], **options)


def refused(*rows: str, **options: bool) -> list[tuple[str, str, object]]:
    with pytest.raises(InvalidInput) as caught:
        read(*rows, **options)
    return [tuple(issue) for issue in caught.value.errors]


def test_a_job_is_read_in_the_units_of_a_trace() -> None:
    reading = read(job(1), job(5, user=3, memory=-1), job(9, processors=-1, allocated=8, estimate=-1, user=-1))
    trace = reading.trace
    assert trace.names == ("1", "5", "9")
    assert trace.submit.tolist() == [10, 50, 90]
    assert trace.runtime.tolist() == [100, 100, 100]
    assert trace.processors.tolist() == [4, 4, 8]  # allocated where nothing was requested
    np.testing.assert_array_equal(trace.estimate, [200, 200, np.nan])
    assert trace.memory.tolist() == [5000 * 1024 * 4, 2000 * 1024 * 4, 5000 * 1024 * 8]  # per processor in the file
    assert trace.users == ("7", "3")
    assert trace.user.tolist() == [0, 1, -1]
    assert (trace.origin, reading.name, reading.machines) == (1e9, "Toy", (64,))
    assert reading.warnings == ()
    assert reading.lacks == (
        "1 job of 3 without an estimate: their exact run times are planned with",
        "1 job of 3 without a user: limits per user do not touch them",
    )


@pytest.mark.parametrize("zipped", [False, True])
def test_a_file_is_read_plain_or_gzip(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "log.swf"  # its name says nothing
    text = "\r\n".join([*HEADER, job(1), "", "; a comment in between", job(2)]).encode("latin-1")
    path.write_bytes(gzip.compress(text) if zipped else text)
    assert read_swf(path).trace.names == ("1", "2")


def test_a_gzip_file_that_breaks_off_says_so(tmp_path: Path) -> None:
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress("\n".join(job(i) for i in range(2000)).encode())[:-100])
    with pytest.raises(InvalidInput, match="the gzip file is broken"):
        read_swf(path)


def test_jobs_that_say_too_little_are_left_out_and_counted() -> None:
    reading = read(
        job(1), job(2, runtime=-1), job(3, runtime=0), job(4, processors=-1, allocated=0), job(5), job(5, status=3)
    )
    assert reading.trace.names == ("1", "5")
    assert reading.dropped == 4
    assert [(w.pointer, w.value) for w in reading.warnings] == [
        ("/lines/11/status", 3.0),
        ("/lines/7/runtime", -1.0),
        ("/lines/9/processors", -1.0),
    ]
    assert reading.warnings[1].message.startswith("2 lines of jobs without a run time left out")


def test_more_columns_than_the_standard_has_are_told_and_ignored() -> None:
    reading = read(job(1) + " node-3 long !gpu", job(2))
    assert reading.trace.names == ("1", "2")
    assert [w.pointer for w in reading.warnings] == ["/lines/6"]
    assert "1 line with more than 18 columns" in reading.warnings[0].message


def test_run_times_above_the_estimate_are_cut_only_when_asked() -> None:
    rows = job(1, runtime=300, estimate=200), job(2, estimate=-1)
    selection, cut = read(*rows), read(*rows, clip=True)
    assert selection.trace.runtime.tolist() == [300, 100]
    assert cut.trace.runtime.tolist() == [200, 100]
    assert [(w.pointer, w.value) for w in selection.warnings] == [("/lines/6/runtime", 300.0)]
    assert "cut down to it" in cut.warnings[0].message


def test_submit_times_out_of_order_are_refused_or_sorted() -> None:
    rows = job(1, submit=10), job(2, submit=30), job(3, submit=20), job(4, submit=20)
    assert refused(*rows) == [
        ("/lines/8/submit", "submit times must ascend, but line 7 was submitted later, at 30 s", 20.0)
    ]
    reading = read(*rows, sort=True)
    assert reading.trace.names == ("1", "3", "4", "2")
    assert reading.warnings[0].pointer == "/lines/8/submit"
    assert reading.warnings[0].message.startswith("1 job out of order of submission, sorted")


@pytest.mark.parametrize(
    ("wrong", "field", "value", "message"),
    [
        ({"runtime": -5}, "runtime", -5.0, "must be a number of seconds from 0, or -1"),
        ({"submit": -1}, "submit", -1.0, "must be a number of seconds from 0"),
        ({"processors": 2.5}, "processors", 2.5, "must be a whole number"),
        ({"allocated": -3}, "allocated", -3.0, "must be a whole number"),
        ({"estimate": -60}, "estimate", -60.0, "must be a number of seconds"),
        ({"job": 1.5}, "job", 1.5, "must be a whole number from 0"),
        ({"runtime": "1_000"}, "runtime", "1_000", "must be a finite number"),
        ({"submit": "nan"}, "submit", "nan", "must be a finite number"),
        ({"estimate": "01:30:00"}, "estimate", "01:30:00", "must be a finite number"),
    ],
)
def test_what_no_job_can_have_is_refused_with_its_line(
    wrong: dict[str, float | str], field: str, value: object, message: str
) -> None:
    [(pointer, text, shown)] = refused(job(1), job(2, **wrong), job(3))
    assert (pointer, shown) == (f"/lines/7/{field}", value)
    assert text.startswith(message)


def test_too_few_columns_are_refused_with_the_line() -> None:
    short = " ".join(job(2).split()[:17])
    assert refused(job(1), short) == [("/lines/7", "must have 18 columns, has 17", short)]


def test_a_job_number_given_twice_names_both_lines() -> None:
    assert refused(job(1), job(2), job(1, submit=50)) == [
        ("/lines/8/job", "job 1 has been given on line 6 already", 1.0)
    ]


def test_a_log_without_jobs_is_refused() -> None:
    assert refused() == [("", "holds no job with a run time and processors", 0)]
    assert refused(job(1, runtime=-1))[0][2] == 1


def test_preceding_jobs_are_parents_when_asked() -> None:
    rows = job(1), job(2, preceding=1, think=30), job(3), job(4, preceding=2)
    ignored, taken = read(*rows), read(*rows, preceding=True).trace
    assert len(ignored.trace.parents) == 0
    assert "2 jobs with a preceding job: not taken as a parent" in ignored.lacks
    assert taken.parent_start.tolist() == [0, 0, 1, 1, 2]
    assert taken.parents.tolist() == [0, 1]


def test_unknown_preceding_jobs_and_cycles_of_them_are_refused() -> None:
    assert [issue[::2] for issue in refused(job(1), job(2, preceding=9), preceding=True)] == [
        ("/lines/7/preceding", 9.0)
    ]
    cycle = job(1, preceding=3), job(2, preceding=1), job(3, preceding=2)
    [(pointer, message, _)] = refused(*cycle, preceding=True)
    assert message == "the tasks wait for each other in a cycle: 1 → 2 → 3 → 1"
    assert pointer == "/lines/6/preceding"


def test_jobs_larger_than_the_machine_of_the_header_are_told() -> None:
    [warning] = read(job(1), job(2, processors=65)).warnings
    assert (warning.pointer, warning.value) == ("/lines/7/processors", 65)


def test_real_logs_are_read_whole(shared_data: Path) -> None:
    """Jobs and dropped lines as counted in the files."""
    kth = shared_data / "swf/KTH-SP2-1996-2.swf.gz"
    reading = read_swf(kth)
    assert (reading.trace.tasks, reading.dropped, reading.machines) == (28_481, 8, (100,))
    assert "475 run times above the estimate" in reading.warnings[1].message
    lublin = read_swf(shared_data / "swf/lublin_256.swf.gz")
    assert (lublin.trace.tasks, lublin.dropped, lublin.warnings) == (10_000, 0, ())
    assert len(lublin.lacks) == 4
    assert read_swf(shared_data / "swf/NASA-iPSC-1993-3.1-cln.swf.gz").dropped == 173


def test_a_schedule_in_order_of_job_ends_is_sorted_back_into_its_log(shared_data: Path) -> None:
    """The clipped log equals, job by job, the input that another simulator wrote out with its schedule."""
    schedule = read_swf(shared_data / "swf/pyss-schedules/KTH-SP2.EASY.swf.gz", sort=True).trace
    log = read_swf(shared_data / "swf/KTH-SP2-1996-2.swf.gz", clip=True).trace
    for name in ("submit", "runtime", "estimate", "processors"):
        np.testing.assert_array_equal(getattr(schedule, name), getattr(log, name))
    assert schedule.names == log.names


@hypothesis_settings(max_examples=40)
@given(trace=logs())
def test_what_is_written_reads_back_as_it_was(trace: Trace) -> None:
    text = list(write_swf(trace, name="Toy machine", machine=5000))
    reading = read_swf(text, preceding=True)
    same(trace, reading.trace)
    assert (reading.name, reading.machines, reading.dropped) == ("Toy machine", (5000,), 0)
    assert swf_omits(trace) == ()


def test_what_the_format_has_no_place_for_is_told(shared_data: Path) -> None:
    workflow = read_wfformat(shared_data / "wfinstances/makeflow/blast-chameleon-small-001.json.gz").trace
    assert swf_omits(workflow) == (
        "names of tasks: jobs are numbered from 1",
        "120 edges: a job has at most one preceding job",
        "the bytes that go along edges",
        "which workflow a task belongs to",
    )
    again = read_swf(write_swf(workflow)).trace
    assert again.names == tuple(map(str, range(1, 44)))
    np.testing.assert_array_equal(again.runtime, workflow.runtime)


def test_a_real_log_written_and_read_is_the_same(shared_data: Path) -> None:
    trace = read_swf(shared_data / "swf/KTH-SP2-1996-2.swf.gz", clip=True).trace
    same(trace, read_swf(write_swf(trace)).trace)


def test_waits_of_a_schedule_stand_in_the_third_column() -> None:
    trace = read(job(1), job(2)).trace
    rows = [line.split() for line in write_swf(trace, wait=np.array([0.0, 2.5])) if not line.startswith(";")]
    assert [row[2] for row in rows] == ["0", "2.5"]
    assert all(len(row) == 18 for row in rows)


BAD = {
    "1 2 3": (3, "", "must have 18 columns"),
    job(3, runtime="x7"): (4, "runtime", "must be a finite number of at most 1000000000000000"),
    job(4, processors=2.5): (5, "processors", "must be a whole number from 0, or -1 where it is unknown"),
    job(1): (6, "job", "has been given on an earlier line"),
}


def test_bad_lines_are_left_out_where_that_is_asked_for() -> None:
    """Each of its own kind; the others are read as if these were not there."""
    sound = [job(1), job(5), job(9)]
    mixed = [sound[0], *BAD, *sound[1:]]
    assert refused(*mixed)[0][0] == f"/lines/{len(HEADER) + 2}"
    reading = read(*mixed, skip_bad=True)
    same(reading.trace, read(*sound).trace)
    first = len(HEADER) - 1
    assert {(one.lines[0] - first, one.field, one.reason) for one in reading.skipped} == set(BAD.values())
    assert [one.count for one in reading.skipped] == [1] * 4
    assert reading.where(1, "runtime") == f"/lines/{len(HEADER) + 6}/runtime"
    assert reading.dropped == 0


def test_what_is_left_out_is_counted_by_reason_and_listed_in_bounds() -> None:
    bad = [job(k, estimate=-5) for k in range(100, 150)]
    reading = read(job(1), *bad, job(200, runtime=-2), skip_bad=True)
    assert [(one.field, one.count, len(one.lines)) for one in reading.skipped] == [
        ("estimate", 50, 20),
        ("runtime", 1, 1),
    ]
    assert read(job(1), skip_bad=True).skipped == ()


def test_jobs_that_lost_their_preceding_job_are_left_out_too() -> None:
    rows = [job(1), job(2, runtime=-7), job(3, preceding=2), job(4, preceding=3), job(5, preceding=1)]
    reading = read(*rows, skip_bad=True, preceding=True)
    assert reading.trace.names == ("1", "5")
    assert [(one.field, one.count) for one in reading.skipped] == [("preceding", 2), ("runtime", 1)]
    assert read(*rows, skip_bad=True).trace.names == ("1", "3", "4", "5")


def test_a_log_of_bad_lines_is_refused_whatever_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused("1 2 3", skip_bad=True)[0][1] == "holds no job with a run time and processors"
    assert refused(job(2), job(1, submit=5), skip_bad=True)[0][1].startswith("submit times must ascend")
    monkeypatch.setattr("app.kinds.workflow.formats.reading.MOST_SKIPPED", 2)
    assert "is this a log in this format?" in refused(job(1), *["1 2"] * 3, skip_bad=True)[0][1]
