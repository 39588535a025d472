"""Queries are read as the framework reads them."""

from __future__ import annotations

from urllib.parse import parse_qsl

from hypothesis import given
from hypothesis import strategies as st

from app.http.query import query_values


@given(st.text(st.sampled_from("ab=&+%20é:;"), max_size=20) | st.binary(max_size=20).map(lambda b: b.decode("latin-1")))
def test_values_are_those_of_the_standard_library(text: str) -> None:
    values = query_values({"query_string": text.encode("latin-1")})
    expected: dict[str, list[str]] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        expected.setdefault(name, []).append(value)
    assert values == expected
