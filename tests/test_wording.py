"""The lint of retired words finds what people read, in all kinds of files, and little else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.wording import (
    EXCUSED,
    LABELS,
    PHRASES,
    Find,
    Text,
    _pattern,
    finds,
    page_texts,
    python_texts,
    schema_texts,
    script_texts,
    template_texts,
    texts,
)

MODULE = '''"""A docstring may say that the file is no JSON."""

LIMIT = 3
"""So may the docstring of a value: it is no JSON."""


def read(name: str, sure: int) -> str:
    """Read it; the text is no JSON."""
    if sure:
        return f"{name} is no JSON"
    return "projected 12 s (99 % sure), " "and it goes on answering"
'''


def retired(parts: list[Text]) -> list[tuple[int, str]]:
    """Line and retired words of each find, by line."""
    return sorted((one.where.line, one.retired) for one in finds(parts))


def test_strings_of_a_module_are_read_and_its_docstrings_are_not() -> None:
    assert retired(list(python_texts("app/a.py", MODULE))) == [
        (10, "is no JSON"),
        (11, "goes on answering"),
        (11, "{} sure)"),
    ]
    parts = 'f"({chance} sure) if {held}"'
    assert retired(list(python_texts("app/a.py", parts))) == [(1, "{} sure)")]
    inner = """f"{name:>{width}}: {'it goes on answering' if one else f'{name} is no JSON'}{f' by {name}'}{' by '}\""""
    assert retired(list(python_texts("app/a.py", inner))) == [(1, "goes on answering"), (1, "is no JSON")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<h2>\nWhat is known\n</h2>", [(1, "What is known")]),
        ("<h2>What is known of {{ name }}</h2>", []),  # no whole label
        ('<p>Fine</p>\n<a title="What it changes">x</a>', [(2, "What it changes")]),
        ("{% if one %}\n<th>Told</th>", [(2, "Told")]),
        ("{% if one %}\n{{ heading('Told') }}", [(2, "Told")]),
        ("<p>it goes <b class='x'>on</b> answering</p>", [(1, "goes on answering")]),
        ('{{ heading("Made") }}', [(1, "Made")]),
        ("<p>it {{ verb }} goes on\n answering</p>", [(1, "goes on answering")]),
        ("{# What is known #}<p>ok</p>", []),
    ],
)
def test_texts_and_attributes_of_templates_are_read(source: str, expected: list[tuple[int, str]]) -> None:
    assert retired(list(template_texts("app/dashboard/templates/a.html", source))) == expected


def test_pages_are_read_across_their_lines_and_schemas_by_their_descriptions() -> None:
    page = "# What it changes\n\nText about words,\nwhich goes on\nanswering.\n"
    assert retired(list(page_texts("docs/a.md", page))) == [(1, "What it changes"), (3, "goes on answering")]
    schema = {"paths": {"/a": {"get": {"summary": "Fine", "description": "It is no JSON"}}}, "x": "is no JSON"}
    assert retired(list(schema_texts("openapi.json", json.dumps(schema)))) == [(1, "is no JSON")]
    lists = {"x-cli": {"columns": ["id", "class: verdicts.level"], "wide": ["level: class"]}, "other": ["class: x"]}
    assert retired(list(schema_texts("openapi.json", json.dumps(lists)))) == [(1, "class")]


def test_strings_of_scripts_are_read_and_their_comments_are_not() -> None:
    script = '// it goes on answering\nconst a = "it goes on answering";\n/* is no JSON */ b(`${a} is no JSON`);'
    items = list(script_texts("clients/typescript/src/index.ts", script))
    assert retired(items) == [(2, "goes on answering"), (3, "is no JSON")]


def test_a_label_in_lower_case_is_a_key_of_a_program_and_a_phrase_ends_at_words() -> None:
    keys = '{"made": 1, "told": 2, "class": 3, "given back": 4}'
    assert retired(list(python_texts("app/a.py", keys))) == [(1, "given back")]
    assert _pattern("not JSON").search("not JSONL") is None
    assert all(_pattern("{} sure)").search(text) for text in ("(12 % sure)", "({} sure)"))


def test_what_replaces_words_is_not_itself_retired_and_each_is_said_once() -> None:
    for old, new in (LABELS | PHRASES).items():
        assert retired([Text("docs/a.md", 1, new)]) == [], old
    assert len({one.lower() for one in (*LABELS, *PHRASES)}) == len(LABELS) + len(PHRASES)


@pytest.fixture(scope="module")
def unexcused() -> list[Find]:
    """What is found in the whole repository if nothing is excused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.wording.EXCUSED", {})
        return list(finds(texts()))


def test_each_excuse_is_needed_and_says_why(unexcused: list[Find]) -> None:
    for (path, words), why in EXCUSED.items():
        assert any(Path(one.where.path).match(path) and one.retired == words for one in unexcused), (path, words)
        assert len(why.split()) > 2


def test_nothing_retired_is_left(unexcused: list[Find]) -> None:
    assert list(finds(one.where for one in unexcused)) == []
