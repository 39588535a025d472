"""The vectorised check agrees with the layout's check of single reports, whatever the numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kinds.contract.inputs import InvalidInput, name_issue, plain
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.samples import Checker
from app.kinds.iterative.spec import Spec

LAYOUT = Layout(
    Spec.model_validate(
        {
            "name": "two",
            "resources": [
                {"name": "gpus", "minimum": 1, "maximum": 4},
                {"name": "memory", "minimum": 0.5, "maximum": 2.0, "step": 0.1},
            ],
            "metrics": [{"name": "loss"}],
            "features": [{"name": "shift", "minimum": -1, "maximum": 1}],
            "iterations": 5,
        }
    )
)
CHECKER = Checker(LAYOUT)

odd = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -1.0, 1e-320, 1e-101, 1e-100, 1e308, 0.55])
numbers = st.one_of(odd, st.floats(0.1, 4.0), st.sampled_from([1.0, 2.0, 4.0, 5.0, 0.5, 0.7, 1.9]))
rows = st.tuples(
    st.sampled_from([1.0, 2.0, 3.0, 4.0]),
    st.sampled_from([0.5, 0.6, 1.1, 2.0]),
    st.floats(0.1, 9.0),
    st.floats(0.1, 9.0),
    st.floats(-1.0, 1.0),
)


def single(row: np.ndarray) -> set[str]:
    """What the layout finds wrong with a row, as pointers."""
    try:
        LAYOUT.encode_report(*CHECKER.split_row(row).values())
    except InvalidInput as error:
        return {issue.pointer for issue in error.errors}
    return set()


@given(st.lists(st.one_of(rows, st.tuples(*[numbers] * 5)), min_size=1, max_size=5))
def test_it_finds_what_the_layout_finds(measured: list[tuple[float, ...]]) -> None:
    data = np.array([(float(i), *row) for i, row in enumerate(measured)])
    expected = next((i for i, row in enumerate(data) if single(row)), None)
    fault = CHECKER.fault(data)
    assert (fault and fault.row) == expected
    if fault is not None:
        assert fault.issue.pointer in single(data[fault.row])


@given(st.lists(rows, min_size=2, max_size=5), st.data())
def test_a_gap_is_found_where_it_is(measured: list[tuple[float, ...]], data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(measured) - 1))
    numbered = np.array([(float(i if i < at else i + 1), *row) for i, row in enumerate(measured)])
    fault = CHECKER.fault(numbered)
    assert fault is not None
    assert (fault.row, fault.issue.pointer, fault.issue.value) == (at, "/iteration", at + 1)


@pytest.mark.parametrize(("first", "row"), [(0, None), (2, None), (3, 2), (5, 0), (-1, 0), (2.5, 0)])
def test_an_execution_may_begin_at_any_iteration_of_the_workload(first: float, row: int | None) -> None:
    data = np.array([(first + i, 1, 0.5, 7.0, 2.0, 0) for i in range(3)])
    fault = CHECKER.fault(data)
    assert (fault and (fault.row, fault.issue.pointer)) == (None if row is None else (row, "/iteration"))


def test_seconds_are_summed() -> None:
    data = np.array([(0, 1, 0.5, 7.0, 2.0, 0), (1, 1, 0.5, 7.0, 3.5, 0)])
    assert CHECKER.pointers[4] == "/metrics/iteration_seconds"
    assert CHECKER.seconds(data) == 5.5


def test_names_are_printable() -> None:
    assert name_issue("Größe №1") is None
    refused = [name for name in ("", "\0", "a\nb", "\ud800", "x" * 256) if name_issue(name) is not None]
    assert len(refused) == 5


def test_values_can_be_carried_by_json() -> None:
    assert [plain(v) for v in (math.nan, -math.inf, 1.5, "a\0\ud800", None)] == ["nan", "-inf", 1.5, "a\ufffd?", None]


@pytest.mark.parametrize(("seconds", "sound"), [(1e-100, True), (9e-101, False), (5e-324, False), (1e100, True)])
def test_a_measurement_is_neither_too_small_nor_too_large_to_reckon_with(seconds: float, sound: bool) -> None:
    data = np.array([(0, 1, 0.5, 7.0, 2.0, 0), (1, 1, 0.5, seconds, 2.0, 0)])
    fault = CHECKER.fault(data)
    assert (fault is None) == sound
    assert (single(data[1]) == set()) == sound
