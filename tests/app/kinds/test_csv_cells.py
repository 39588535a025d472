"""Cells that spreadsheets calculate: none are written, and all are read back as they were."""

from __future__ import annotations

import csv
import re

from hypothesis import given
from hypothesis import strategies as st

from app.kinds.columns import csv_writer, escape_formula, unescape_formula

FORMULA = re.compile(r"(^|;)[=+\-@\t\r\n]")


@given(st.text(st.sampled_from("=+-@\t\r\n';a1 ")) | st.text())
def test_text_is_no_formula_and_reads_back(text: str) -> None:
    assert FORMULA.search(escape_formula(text)) is None
    assert unescape_formula(escape_formula(text)) == text


def test_what_needs_no_escaping_is_written_and_read_as_it_is() -> None:
    for text in ("", "'", "it's", "a=b", "1-2", "'a", "a;b"):
        assert escape_formula(text) == unescape_formula(text) == text


def test_numbers_stay_numbers() -> None:
    line = csv_writer()
    assert line([-1.5, -2, 1e-7, None, "-1.5"]) == "-1.5,-2,1e-07,,'-1.5\n"
    assert next(csv.reader([line(["=1,2"])])) == ["'=1,2"]
