"""Whatever a file holds, a reader gives a trace or says what is wrong with it; it never fails, nor warns aside."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from app.kinds.contract.inputs import InvalidInput
from app.kinds.workflow.formats.reading import Reading
from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.formats.writing import swf_omits, wfformat_omits, write_swf, write_wfformat
from app.kinds.workflow.trace import Trace
from tests.app.kinds.workflow.formats.test_swf import job
from tests.app.kinds.workflow.formats.test_wfformat import FLAT, SPLIT

CELLS = st.sampled_from(
    ["-1", "0", "1", "-2", "0.5", "1e15", "1e16", "1e308", "1e999", "nan", "-inf", "1_0", "", "x", "12:30", "\x00", ";"]
)
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 10**20), st.floats(), st.text(max_size=3), st.just([]), st.just({}),
    st.just(["t1"]), st.just([["t1"]]), st.just("t1"),
)  # fmt: skip


def sound(reading: Reading) -> None:
    """What simulators rely on."""
    trace: Trace = reading.trace
    tasks = trace.tasks
    assert tasks == len(trace.names) == len(set(trace.names)) > 0
    assert (np.diff(trace.submit) >= 0).all()
    assert (trace.processors >= 1).all()
    assert not (trace.runtime < 0).any()
    assert np.isfinite(trace.data).all()
    assert trace.parent_start[-1] == len(trace.parents) == len(trace.data)
    assert ((trace.parents >= 0) & (trace.parents < tasks)).all()
    assert ((trace.user >= -1) & (trace.user < len(trace.users))).all()
    json.dumps([reading.lacks, [warning.pointer for warning in reading.warnings]])
    assert "".join(write_swf(trace))
    assert "".join(write_wfformat(trace)).encode()
    assert isinstance(swf_omits(trace) + wfformat_omits(trace), tuple)


def judged(read: Callable[[], Reading]) -> None:
    """A sound trace, or sentences on what is wrong."""
    issues = None
    try:
        reading = read()
    except InvalidInput as error:
        issues = error.errors
    if issues is None:
        sound(reading)
    else:
        assert issues
        assert all(issue.message for issue in issues)


def test_half_a_character_is_refused() -> None:
    judged(lambda: read_wfformat([json.dumps(SPLIT).replace("t4", "\\ud800")]))


@hypothesis_settings(max_examples=150)
@given(
    rows=st.lists(st.lists(st.tuples(st.integers(0, 17), CELLS), max_size=3), min_size=1, max_size=4),
    header=st.text(max_size=20),
    sort=st.booleans(),
)
def test_a_log_of_odd_cells(rows: list[list[tuple[int, str]]], header: str, sort: bool) -> None:
    lines = [f"; MaxProcs: {header}", f"; UnixStartTime: {header[::-1]}"]
    for number, changes in enumerate(rows):
        cells = job(number + 1).split()
        for column, cell in changes:
            cells[column] = cell
        lines.append(" ".join(cells))
    judged(lambda: read_swf(lines, sort=sort, preceding=sort))


@hypothesis_settings(max_examples=150)
@given(flat=st.booleans(), value=ODD, data=st.data())
def test_a_workflow_with_an_odd_part(flat: bool, value: Any, data: st.DataObject) -> None:
    document = json.loads(json.dumps(FLAT if flat else SPLIT))
    place = document
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        deeper = isinstance(place[key], dict | list) and len(place[key])
        if not deeper or data.draw(st.integers(0, 4)) == 0:
            break
        place = place[key]
    place[key] = value
    judged(lambda: read_wfformat([json.dumps(document)]))


@hypothesis_settings(max_examples=80)
@given(at=st.floats(0, 1), noise=st.binary(max_size=4), cut=st.integers(0, 6))
def test_a_workflow_with_damaged_bytes(at: float, noise: bytes, cut: int) -> None:
    text = json.dumps(SPLIT).encode()
    place = int(at * len(text))
    judged(lambda: read_wfformat([text[:place], noise, text[place + cut :]]))
