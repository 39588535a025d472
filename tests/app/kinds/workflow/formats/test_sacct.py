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
    np.testing.assert_array_equal(trace.memory / 2**20, [16 * 1024, 500, 500])  # 8 GiB on each of two nodes
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
