"""How deeply JSON may be nested."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kinds.contract.inputs import DEEPEST, deep_place, repeated_place, too_deep

ANY = st.recursive(
    st.none() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@given(ANY, st.integers(DEEPEST - 8, DEEPEST + 2))
def test_text_and_value_are_measured_alike(inner: object, levels: int) -> None:
    text = "[" * levels + json.dumps(inner) + "]" * levels
    assert (deep_place(text.encode()) is not None) == too_deep(json.loads(text))


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (f'{{"metrics": {{"a": 1, "loss": {nested(65)}}}}}', "/metrics/loss"),
        (f'{{"reports": [{{}}, {{"x/y": {nested(65)}}}]}}', "/reports/1/x~1y"),
        (nested(65), ""),
        ('{"a":' * 65, "/a" * 8),
        (f'{{"a": "{"[" * 100}", "b": "\\"{"[" * 100}"}}', None),
        (nested(DEEPEST), None),
        ("[" * DEEPEST + "]" * 1000 + "[", None),
    ],
)
def test_the_field_is_named(document: str, pointer: str | None) -> None:
    assert deep_place(document.encode()) == pointer


@given(ANY)
def test_what_is_named_once_is_never_called_named_twice(value: object) -> None:
    assert repeated_place(json.dumps(value).encode()) is None


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ('{"a": {"b": 1}, "c": [{"b": 1}, {"b": 2}]}', None),
        ('{"a": [{}, {"b": 1, "c": {"b": 1}, "b": 2}]}', "/a/1/b"),
        ('{"a": {"x": 1}, "\\u0061" : 2}', "/a"),
        ('{"text": "\\"text\\":", "other": ":"}', None),
        ('{"a": 1, "a": 2', None),
    ],
)
def test_a_member_that_is_named_twice_is_found(document: str, pointer: str | None) -> None:
    assert repeated_place(document.encode()) == pointer
