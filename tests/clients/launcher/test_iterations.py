"""Where iterations end: by what is told, by a file, by output; and how long they took."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from steward_client.launcher.iterations.files import OwnFile, Tail, parse_marks
from steward_client.launcher.iterations.mark import Clock, Iteration, Mark
from steward_client.launcher.iterations.output import Lines, Matcher, Spread
from steward_client.launcher.limits.guarded import copy_output


def measured(marks: list[Mark], ended: float) -> list[tuple[int, float | None]]:
    clock = Clock()
    iterations: list[Iteration] = [one for mark in marks for one in clock.hear(mark)]
    iterations += clock.finish(100.0 + ended)
    return [(one.index, one.seconds and round(one.seconds, 6)) for one in iterations]


def test_marks_at_ends_do_not_tell_when_the_first_began_and_the_same_number_counts_once() -> None:
    marks = [Mark(101.0, 1), Mark(102.5, 2), Mark(102.9, 2), Mark(104.0, 3)]
    assert measured(marks, 5.0) == [(0, None), (1, 1.5), (2, 1.5)]


def test_marks_at_starts_leave_out_what_came_before_and_end_with_the_command() -> None:
    marks = [Mark(103.0, 1, 2, position="start"), Mark(104.0, 2, 2, position="start")]
    assert measured(marks, 6.0) == [(0, 1.0), (1, 2.0)]


def restarted(before: list[Mark], after: list[Mark]) -> list[tuple[int, float | None, float]]:
    """Iterations of a command that is started again in between: number, seconds, and the pause before it."""
    clock = Clock(resumes=True)
    results = [one for mark in before for one in clock.hear(mark)]
    clock.restart()
    results += [one for mark in after for one in clock.hear(mark)]
    return [(one.index, one.seconds and round(one.seconds, 6), round(one.pause, 6)) for one in results]


def test_what_a_command_does_again_is_not_counted_and_its_pause_is_no_iterations() -> None:
    before = [Mark(101.0, 1), Mark(102.0, 2), Mark(103.0, 3)]
    known = [(0, None, 0.0), (1, 1.0, 0.0), (2, 1.0, 0.0)]
    again = [Mark(143.0, 2), Mark(143.5, 3), Mark(144.0, 4), Mark(144.5, 5)]
    assert restarted(before, again) == [*known, (3, 0.5, 40.5), (4, 0.5, 0.0)]
    assert restarted(before, [Mark(142.0, 1), *again]) == [*known, (3, 0.5, 40.5), (4, 0.5, 0.0)]  # as low as the first
    exact = [Mark(144.0, 4), Mark(144.5, 5)]  # where it began again is unknown
    assert restarted(before, exact) == [*known, (3, None, 41.0), (4, 0.5, 0.0)]
    entries = [Mark(144.0, 4, metrics={"iteration_seconds": 0.4}), Mark(144.5, 5)]
    assert restarted(before, entries) == [*known, (3, 0.4, 40.6), (4, 0.5, 0.0)]


def test_an_iteration_in_which_a_command_was_stopped_begins_again() -> None:
    before = [Mark(101.0, 1, position="start"), Mark(102.0, 2, position="start"), Mark(103.0, 3, position="start")]
    again = [Mark(143.0, 3, position="start"), Mark(143.2, 3, position="start"), Mark(143.5, 4, position="start")]
    assert restarted(before, again) == [(0, 1.0, 0.0), (1, 1.0, 0.0), (2, 0.5, 40.0)]
    assert restarted(before, again[2:]) == [(0, 1.0, 0.0), (1, 1.0, 0.0), (2, None, 40.5)]


def test_seconds_that_are_told_are_taken() -> None:
    assert measured([Mark(101.0, 0, metrics={"iteration_seconds": 0.25}), Mark(102.0, 1)], 2.0) == [(0, 0.25), (1, 1.0)]


@pytest.mark.parametrize(
    ("line", "number", "total", "metrics", "position"),
    [
        ("Epoch 3/90", 3, 90, {}, "start"),
        ("epoch 4: loss=0.25 acc: 0.5", 4, None, {"loss": 0.25, "acc": 0.5}, "end"),
        ("[epoch: 5 of 10] val_loss = 1e-3", 5, 10, {"val_loss": 1e-3}, "end"),
        ("Iteration 6: loss 0.125", 6, None, {"loss": 0.125}, "end"),
        ("INFO Iteration 12/50, time: 3.5s", 12, 50, {"time": 3.5}, "end"),
        ("step 700 | loss: nan", 700, None, {}, "start"),
    ],
)
def test_the_usual_forms_are_found(line: str, number: int, total: int | None, metrics: object, position: str) -> None:
    (mark,) = Matcher().match(line)
    assert (mark.number, mark.total, mark.metrics, mark.position) == (number, total, metrics, position)


def test_lines_that_are_read_at_once_share_the_time_since_the_last() -> None:
    early = Spread(6.0).spread([Mark(9.0, 1), Mark(9.0, 2), Mark(9.0, 3)])
    assert [mark.at for mark in early] == [7.0, 8.0, 9.0]
    spread = Spread(6.0)
    assert spread.spread([Mark(10.0, 1)]) == [Mark(10.0, 1)]
    bunch = spread.spread([Mark(13.0, 1), Mark(13.0, 2), Mark(13.0, 3), Mark(13.0, 3), Mark(13.0, 4)])
    assert [(mark.at, mark.number) for mark in bunch] == [(11.0, 2), (12.0, 3), (13.0, 4)]
    assert [mark.number for mark in Spread(6.0, resumes=True).spread([Mark(7.0, 3), Mark(9.0, 3)])] == [3, 3]
    assert spread.spread([Mark(14.0, 4)]) == []
    late = spread.spread([Mark(16.0, 5), Mark(16.001, 6)])  # a line's beginning was read just before the rest
    assert [mark.at for mark in late] == [pytest.approx(15.0005), pytest.approx(16.001)]
    assert [mark.at for mark in spread.spread([Mark(17.0, 7), Mark(17.1, 8)])] == [17.0, 17.1]
    behind = spread.spread([Mark(16.9, 9)]), spread.spread([Mark(17.0, 10), Mark(17.3, 11)])  # of the other stream
    assert [[mark.at for mark in marks] for marks in behind] == [[17.1], [17.1, 17.3]]


def test_a_line_and_its_end_and_what_has_waited_are_read_as_one_piece() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"3/5 loss=0.1\n4/5 loss=0.1")
    pieces = list[bytes]()

    def take(piece: bytes) -> None:
        pieces.append(piece)
        if len(pieces) == 1:  # as long as this takes, the command goes on writing
            for text in (b"\n", b"5/5 ", b"\n"):
                os.write(writer, text)
            os.close(writer)

    with os.fdopen(reader, "rb") as stream:
        copy_output(stream, take)
    assert pieces == [b"3/5 loss=0.1\n4/5 loss=0.1", b"\n5/5 \n"]


def test_one_form_is_kept_to() -> None:
    matcher = Matcher()
    marks = [matcher.match(line) for line in ("loading", "Epoch 1/3", "step 100 loss=1", "Epoch 2/3")]
    assert [[mark.number for mark in match] for match in marks] == [[], [1], [], [2]]
    assert matcher.form == "lines like 'Epoch 3/90', at an iteration's start"


def test_a_pattern_of_ones_own_has_its_groups_as_metrics() -> None:
    matcher = Matcher(re.compile(r"pass (?P<iteration>\d+).*loss=(?P<loss>[\d.]+)"))
    (mark,) = matcher.match("pass 7 lr=3 loss=0.5")
    assert (mark.number, mark.metrics, mark.position) == (7, {"loss": 0.5}, "end")
    assert matcher.match("Epoch 1/3") == []


def test_lines_are_whole_however_they_come() -> None:
    heard: list[str] = []
    lines = Lines(lambda line, _, whole: heard.append(line) if whole else None)
    for piece in (b"Epo", b"ch 1\rEpoch 2", b"\n\n\xff\nrest"):
        lines.feed(piece)
    assert heard == ["Epoch 1", "Epoch 2", "\N{REPLACEMENT CHARACTER}"]


def test_what_is_told_is_read_and_nonsense_skipped(tmp_path: Path) -> None:
    file = tmp_path / "iterations"
    tail = Tail(file, parse_marks)
    assert list(tail.marks()) == []
    fields = {"iteration": 0, "total": 7, "metrics": {"loss": 0.5, "bad": None}, "features": {"batch": 8}}
    file.write_text(json.dumps(fields) + '\n[]\n{"iteration": "x"}\n{"iteration": 1, "metr')
    (mark,) = tail.marks()
    assert (mark.number, mark.total, mark.metrics, mark.features) == (0, 7, {"loss": 0.5}, {"batch": 8.0})
    with file.open("a") as more:
        more.write('ics": {}}\n')
    assert [mark.number for mark in tail.marks()] == [1]
    file.write_text('{"iteration": 2, "total": "x"}\n')
    assert [(mark.number, mark.total) for mark in tail.marks()] == [(2, None)]


@pytest.mark.parametrize(
    ("text", "numbers", "metrics"),
    [
        ("epoch,loss\n0,0.5\n1,0.25\n", [0, 1], {"loss": 0.25}),
        ('{"step": 3, "loss": 2}\n{"step": 4, "loss": 1}\n', [3, 4], {"loss": 1.0}),
        ("done one\ndone two\n", [None], {}),
    ],
)
def test_a_file_of_the_scripts_own(tmp_path: Path, text: str, numbers: list[int], metrics: object) -> None:
    file = tmp_path / "log.csv"
    file.write_text("old,line\n9,9\n")
    tail = Tail(file, OwnFile().read, skip=True)
    file.unlink()
    assert list(tail.marks()) == []
    file.write_text(text)
    marks = list(tail.marks())
    assert [mark.number for mark in marks] == numbers
    assert marks[-1].metrics == metrics
