"""``steward simulate``: what it prints, and what it refuses."""

import json
import os
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from workers.kinds.workflow.simulator.__main__ import main

LOG = """; MaxProcs: 4
1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1
2 10 -1 10 2 -1 -1 2 20 -1 1 1 1 -1 1 -1 -1 -1
3 10 -1 5 3 -1 -1 3 5 -1 1 2 1 -1 1 -1 -1 -1
"""
WORKFLOW = {
    "name": "two",
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                {"name": "a", "id": "a", "parents": [], "children": ["b"], "inputFiles": [], "outputFiles": []},
                {"name": "b", "id": "b", "parents": ["a"], "children": [], "inputFiles": [], "outputFiles": []},
            ],
            "files": [],
        },
        "execution": {
            "makespanInSeconds": 30,
            "executedAt": "2026-01-01T00:00:00+00:00",
            "tasks": [{"id": "a", "runtimeInSeconds": 10.0}, {"id": "b", "runtimeInSeconds": 20.0}],
            "machines": [],
        },
    },
}


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "small.swf"
    path.write_text(LOG)
    return str(path)


def read_to_its_end(terminal: int, into: list[bytes]) -> None:
    """What is written on a terminal, from its other end, until that is closed (which is an error on Linux)."""
    try:
        while block := os.read(terminal, 4096):
            into.append(block)
    except OSError:
        pass


def test_a_terminal_has_a_bar_while_sequences_are_played(
    log: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = os.openpty()
    visited: list[bytes] = []
    reader = threading.Thread(target=read_to_its_end, args=(ours, visited))
    reader.start()
    with closing(os.fdopen(theirs, "w")) as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        assert main([log, "--strategy=fcfs,sjf,f4", "--json"]) == 0
    reader.join()
    os.close(ours)
    reported = b"".join(visited).decode()
    assert "simulate" in reported
    assert "100%" in reported
    assert len(json.loads(capsys.readouterr().out)["strategies"]) == 3


def test_a_pipe_has_no_bar(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([log, "--strategy=fcfs,sjf,f4", "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_figures_of_a_log_as_json(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([log, "--strategy=FCFS,sjf", "--backfilling=easy", "--nodes=1x4@1.0:36", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    first, second = body["strategies"]
    assert first["sequences"] == [
        {
            "first": 0,
            "tasks": 3,
            "slowdown": pytest.approx((1 + 10 + 10.5) / 3),
            "wait": pytest.approx((0 + 90 + 100) / 3),
            "makespan": 115,
            "misses": 0,
            "utilisation": pytest.approx(435 / (4 * 115)),
            "cost": pytest.approx(1.15),
        }
    ]
    assert second["mean"]["slowdown"] == pytest.approx((1 + 9.5 + 10.5) / 3)
    assert second["against_first"] == {
        "slowdown": pytest.approx(-0.5 / 3),
        "standard_error": None,
        "better_in": 1,
        "of": 1,
    }


def test_a_table_compares_strategies_over_sequences(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([log, "--strategy=fcfs,f4", "--backfilling=easy", "--order=sjf", "--sequences=0:2,1:2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("f4 1:2") for line in lines)
    assert any(line.startswith("f4 − fcfs: slowdown +0.00 ± 0.00") for line in lines)


def test_a_published_figure(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(shared_data / "swf" / "lublin_256.swf.gz")
    options = ["--strategy=F4", "--backfilling=rls", "--nodes=256", "--sequences=1981:1024,2756:1024", "--json"]
    assert main([*options, trace]) == 0
    (result,) = json.loads(capsys.readouterr().out)["strategies"]
    assert [round(part["slowdown"], 4) for part in result["sequences"]] == [65.3625, 33.5664]


def test_predicted_run_times_and_simulating_ahead_stand_beside_the_rules(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = str(shared_data / "swf" / "pyss-schedules" / "KTH-SP2.EASY.swf.gz")
    names = ["sjf", "saf-predicted", "lookahead"]
    options = ["--sort", f"--strategy={','.join(names)}", "--backfilling=easy", "--sequences=9000:300,12000:300"]
    for more in ([], ["--exact-runtimes"]):
        assert main([trace, "--json", *options, *more]) == 0
        strategies = json.loads(capsys.readouterr().out)["strategies"]
        assert [one["strategy"] for one in strategies] == names
        starts = [[part["slowdown"] for part in one["sequences"]] for one in strategies]
        assert all(len({one[k] for one in starts}) == 3 for k in (0, 1))  # each schedules both in a way of its own


def test_predicted_run_times_also_order_a_queue_without_a_committed_job(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = str(shared_data / "swf" / "pyss-schedules" / "KTH-SP2.EASY.swf.gz")
    slowdowns = list[float]()
    for backfilling in ("none", "uncommitted"):
        options = ["--sort", "--strategy=saf-predicted,agent", "--sequences=9000:300", f"--backfilling={backfilling}"]
        assert main([trace, "--json", *options]) == 0
        slowdowns += [one["mean"]["slowdown"] for one in json.loads(capsys.readouterr().out)["strategies"]]
    assert slowdowns[2] < slowdowns[0]
    assert slowdowns[3] < slowdowns[1]


def test_a_workflow_is_played_on_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.json"
    path.write_text(json.dumps(WORKFLOW))
    assert main([str(path), "--strategy=heft", "--nodes=1x1@2.0:360", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["strategies"]
    assert result["mean"]["makespan"] == 15
    assert result["mean"]["cost"] == pytest.approx(1.5)
    assert main([str(path), "--nodes=1x1", "--backfilling=easy"]) == 1
    assert main([str(path)]) == 1
    assert "--nodes: say what the workflow runs on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--strategy=f9"], "--strategy: must be one of fcfs, sjf"),
        (["--strategy=f4,F4"], "--strategy: a name is given twice"),
        (["--order=f9"], "--order: must be one of strategy, fcfs"),
        (["--sequences=2:2"], "--sequences: 2:2 reaches beyond the trace, which has 3 jobs"),
        (["--sequences=2"], "--sequences: '2' is not first:count"),
        (["--nodes=2x4"], "--nodes: batch jobs are played on one machine"),
        (["--strategy=saf-predicted", "--order=sjf"], "--order: saf-predicted backfills in its own order"),
        (["--strategy=saf-predicted", "--backfilling=conservative"], "--backfilling: agents and predicted run times"),
        (["--strategy=lookahead", "--backfilling=rls"], "--strategy: lookahead simulates ahead with none or easy"),
        (["--strategy=lookahead", "--user-tasks=1"], "--strategy: lookahead simulates ahead with none or easy"),
        (["--nodes=3"], "task 1 needs 4 processors, of which there are 3"),
        (["--plot=schedule.gif"], "schedule.gif: a plot is one of .html"),
    ],
)
def test_what_does_not_fit_is_refused(
    log: str, options: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([log, *options]) == 1
    captured = capsys.readouterr()
    assert complaint in captured.err
    assert captured.out == ""


def test_what_cannot_be_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.swf")]) == 1
    assert "none.swf" in capsys.readouterr().err
    broken = tmp_path / "broken.swf"
    broken.write_text("1 2 3\n")
    assert main([str(broken)]) == 1
    assert "/lines/1" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nothere.swf")]) == 1
    assert capsys.readouterr().err == f"steward simulate: {tmp_path / 'nothere.swf'}: No such file or directory\n"
