"""Traces as stored: everything comes back, and equal traces are equal bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.trace import Trace, compress, independent_jobs, pack, unpack
from tests.app.kinds.workflow.traces import logs, same, workflows


@hypothesis_settings(max_examples=40)
@given(trace=st.one_of(logs(), workflows()))
def test_a_trace_comes_back_as_it_was(trace: Trace) -> None:
    plain = pack(trace)
    again = unpack(compress(plain))
    same(trace, again)
    assert pack(again) == plain


@pytest.mark.parametrize("names", [("0", "1"), ("1", "01"), ("a", "2"), ("9" * 30, "1"), ("-1", "+1"), ("1_0", "10")])
def test_names_come_back_whatever_they_look_like(names: tuple[str, str]) -> None:
    two = independent_jobs(np.zeros(2), np.ones(2), np.ones(2), np.ones(2, np.int64), np.zeros(2, np.int64))
    same(two._replace(names=names), unpack(compress(pack(two._replace(names=names)))))


def test_an_empty_trace_comes_back() -> None:
    none = np.zeros(0)
    whole = np.zeros(0, np.int64)
    same(
        independent_jobs(none, none, none, whole, whole),
        unpack(compress(pack(independent_jobs(none, none, none, whole, whole)))),
    )


def test_a_real_log_takes_little_room(shared_data: Path) -> None:
    """28,481 jobs with six known columns of 8 bytes are 1.4 MB as they are."""
    trace = read_swf(shared_data / "swf/KTH-SP2-1996-2.swf.gz").trace
    assert len(compress(pack(trace))) < 450_000
