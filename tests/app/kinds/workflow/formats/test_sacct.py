"""Slurm's accounts as batch logs: what is left out, how fields are read, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from app.kinds.contract.inputs import InvalidInput
from app.kinds.workflow.formats.sacct import read_sacct

HEAD = "JobID|JobIDRaw|User|Submit|Start|End|Elapsed|AllocCPUS|ReqCPUS|NNodes|ReqMem|Timelimit|State"
DUMP = f"""{HEAD}
12|12|ann|2026-11-30T04:00:00|2026-11-30T04:00:10|2026-11-30T05:00:10|01:00:00|4|4|2|8G|1-02:00:00|COMPLETED
12.batch|12.batch||2026-11-30T04:00:10|2026-11-30T04:00:10|2026-11-30T05:00:10|01:00:00|2|2|1|||COMPLETED
12.0|12.0||2026-11-30T04:00:10|2026-11-30T04:00:10|2026-11-30T05:00:10|01:00:00|4|4|2|||COMPLETED
13_1|14|bob|2026-11-30T04:01:00|2026-11-30T04:01:00|2026-11-30T04:01:30|00:00:30|1|1|1|500Mc|UNLIMITED|FAILED
13_2|13|bob|2026-11-30T04:01:00|2026-11-30T04:02:00|2026-11-30T04:03:40|00:01:40|1|1|1|500Mc|00:10:00|TIMEOUT
15|15|ann|2026-11-30T03:59:00|Unknown|2026-11-30T04:05:00|00:00:00|0|2|1|1G|00:10:00|CANCELLED by 0
16|16|ann|2026-11-30T04:06:00|2026-11-30T04:06:00|Unknown|00:10:00|2|2|1|1G|00:10:00|RUNNING
17|17|ann|2026-11-30T04:07:00|2026-11-30T04:07:00|2026-11-30T04:07:05|00:00:05|2|2|1|1G|00:10:00|REQUEUED
"""


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def test_jobs_are_read_and_steps_and_what_has_not_ended_left_out() -> None:
    reading = read_sacct(lines(DUMP))
    trace = reading.trace
    assert trace.names == ("12", "14", "13")
    np.testing.assert_array_equal(trace.submit - trace.submit[0], [0, 60, 60])
    np.testing.assert_array_equal(trace.runtime, [3600, 30, 100])
    np.testing.assert_array_equal(trace.estimate, [26 * 3600, np.nan, 600])
    np.testing.assert_array_equal(trace.processors, [4, 1, 1])
    np.testing.assert_array_equal(trace.memory / 2**20, [8 * 1024, 500, 500])  # 8 GiB of the job
    assert trace.user.tolist()[1:] == [trace.user[1]] * 2 != [trace.user[0]] * 2
    assert trace.origin + trace.submit[0] == 1796011200  # 04:00:00
    assert reading.dropped == 1  # the one that never started


def test_other_columns_in_another_order_are_read_alike() -> None:
    names = HEAD.split("|")
    turned = ["|".join(row.split("|")[::-1]) for row in DUMP.splitlines()]
    assert turned[0].split("|") == names[::-1]
    one, other = read_sacct(lines(DUMP)).trace, read_sacct([f"{line}\n" for line in turned]).trace
    np.testing.assert_array_equal(one.runtime, other.runtime)
    raw = "JobID|Submit|Start|ElapsedRaw|NCPUS|TimelimitRaw\n7|100|110|20|3|2\n8|200|200|5|1|\n"
    trace = read_sacct(lines(raw)).trace
    assert (trace.runtime.tolist(), trace.processors.tolist()) == ([20, 5], [3, 1])
    np.testing.assert_array_equal(trace.estimate, [120, np.nan])


def test_memory_is_per_node_per_processor_or_of_the_whole_job_by_its_last_letter() -> None:
    memory = [read_sacct(lines(DUMP.replace("|8G|", f"|8G{each}|"))).trace.memory[0] / 2**30 for each in ("", "n", "c")]
    np.testing.assert_allclose(memory, [8, 16, 32])  # of 4 processors on 2 nodes


def test_a_job_without_an_end_is_left_out_also_where_no_column_has_its_state() -> None:
    without = "".join(f"{line.rpartition('|')[0]}\n" for line in DUMP.splitlines() if "REQUEUED" not in line)
    assert read_sacct(lines(without)).trace.names == ("12", "14", "13")


def test_tasks_of_arrays_get_numbers_that_no_job_has() -> None:
    raw = "JobID|Submit|Start|End|NCPUS\n3|100|110|120|1\n9_1|100|110|130|1\n9_2|100|110|140|1\n"
    trace = read_sacct(lines(raw)).trace
    assert len(set(trace.names)) == 3
    assert sorted(trace.runtime.tolist()) == [10, 20, 30]


def test_lines_with_more_or_fewer_cells_are_refused_or_skipped() -> None:
    cut = DUMP.replace("|14|bob|", "|14|b|ob|") + "\n18|18|ann|2026\n"
    with pytest.raises(InvalidInput) as refused:
        read_sacct(lines(cut))
    assert [one.pointer for one in refused.value.errors] == ["/lines/5", "/lines/11"]
    assert "must have 13 cells, as line 1, has 14" in refused.value.errors[0].message
    reading = read_sacct(lines(cut), skip_bad=True)
    assert reading.trace.names == ("12", "13")
    assert sum(one.count for one in reading.skipped) == 2


@pytest.mark.parametrize(
    ("text", "pointer", "message"),
    [
        ("12|ann\n", "/lines/1", "must name the columns JobID or JobIDRaw, Submit, Start"),
        (DUMP.replace("2026-11-30T04:01:00|2026-11-30T04:02", "soon|2026-11-30T04:02"), "/lines/6/submit", "number"),
        (DUMP.replace("13_2|13|", "13_2|12|"), "/lines/6/job", "line 2"),
        (f"{HEAD}\n", "", "holds no job"),
    ],
)
def test_what_is_wrong_is_refused_by_its_line(text: str, pointer: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_sacct(lines(text))
    issue = refused.value.errors[0]
    assert issue.pointer == pointer
    assert message in issue.message


def test_the_command_reads_a_dump_as_it_comes(tmp_path: Path) -> None:
    file, other = tmp_path / "accounts.txt", tmp_path / "broken.txt"
    file.write_text(DUMP)
    other.write_text("nothing\n")
    done = CliRunner().invoke(cli, ["import", "sacct", str(file), "--json", "--export", str(tmp_path / "log.swf")])
    assert done.exit_code == 0, done.output
    (entry,) = json.loads(done.output)
    assert (entry["tasks"], entry["users"], entry["dropped"]) == (3, 2, 1)
    again = CliRunner().invoke(cli, ["import", "swf", str(tmp_path / "log.swf"), "--json"])
    assert json.loads(again.output)[0]["processor_seconds"] == entry["processor_seconds"]
    assert CliRunner().invoke(cli, ["import", "sacct", str(other)]).exit_code == 1
