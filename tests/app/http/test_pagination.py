"""Cursors: they survive the round trip, and no other text passes for one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import Invalid
from app.http.pagination import decode_cursor, encode_cursor

moments = st.datetimes(timezones=st.just(UTC))
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(texts, st.integers(-(2**31) + 1, 2**31 - 1), moments)
def test_a_cursor_is_read_back(text: str, number: int, moment: datetime) -> None:
    cursor = encode_cursor([text, number, moment])
    assert cursor.isascii()
    assert not set(cursor) & set("+/=&?#% ")
    assert decode_cursor(cursor, [str, int, datetime]) == [text, number, moment]


@given(st.text(max_size=40))
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        decode_cursor(text, [datetime, str, str])
    assert caught.value.errors[0].pointer == "/query/cursor"


@pytest.mark.parametrize("keys", [[1], ["a", "b"], ["2026-01-01T00:00:00"], [2**40], ["a\0"]])
def test_a_cursor_of_another_list_is_refused(keys: list[str | int]) -> None:
    kind = int if isinstance(keys[0], int) and keys[0] > 1 else datetime
    with pytest.raises(Invalid, match="cursor"):
        decode_cursor(encode_cursor(keys), [kind])


@pytest.mark.parametrize(
    ("key", "kind"), [("\ud800", str), ("0001-01-01T00:00:00+23:59", datetime), ("9999-12-31T23:59:59-23:59", datetime)]
)
def test_a_position_that_no_row_can_have_is_refused(key: str, kind: type) -> None:
    with pytest.raises(Invalid, match="cursor"):
        decode_cursor(encode_cursor([key]), [kind])
