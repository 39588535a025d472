"""What commands print: tables as wide as a terminal, YAML and CSV that read back, names for other commands."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime
from typing import Any, cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from app.cli.operations import Column
from app.cli.remote import output
from app.cli.remote.output import document, list_parts, print_parts, table

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ONE, TWO, NEAR = "abcdef01" + 24 * "1", "22222222" + 24 * "2", "abcdef01" + 24 * "9"
COLUMNS = [
    *map(Column.parse, ("id", "workload", "outcome", "took: begun..ended", "cost: savings.cost", "age: created_at")),
    *(Column.parse(one, wide=True) for one in ("reason", "allocation: decision.allocation")),
]


def run(identifier: str, **more: Any) -> dict[str, Any]:
    return {
        "id": identifier,
        "workload": "resnet18",
        "outcome": "met",
        "begun": "2026-03-01T10:00:00Z",
        "ended": "2026-03-01T10:02:00Z",
        "savings": {"cost": 1.25},
        "created_at": "2026-03-01T09:00:00Z",
        "reason": "in time",
        "decision": {"allocation": {"gpus": 4.0, "cpu": 0.5}},
        **more,
    }


def lines(*items: dict[str, Any], width: int = 80, **more: Any) -> list[str]:
    return table([one for one in COLUMNS if not one.wide], items, width, NOW, **more).plain.split("\n")


def parts(form: Any, *items: dict[str, Any], **more: Any) -> list[str]:
    return [str(part) for part in list_parts(COLUMNS, items, form, 80, **more)]


def test_a_table_has_short_ids_ages_and_durations() -> None:
    assert lines(run(ONE), run(TWO, ended=None, savings=None)) == [
        "id        workload  outcome  took   cost  age",
        "abcdef01  resnet18  met      2 min  1.25  3 h",
        "22222222  resnet18  met      2 h          3 h",
    ]
    assert lines(run(ONE), headers=False) == ["abcdef01  resnet18  met  2 min  1.25  3 h"]


def test_short_ids_are_as_long_as_it_takes_to_be_unique() -> None:
    assert [line.split()[0] for line in lines(run(ONE), run(NEAR))] == ["id", "abcdef011", "abcdef019"]
    assert lines(run(ONE), full=True)[1].split()[0] == ONE
    (piped,) = list_parts(COLUMNS, [run(ONE), run(TWO)], "table", 80, full_ids=True)
    assert [line.split()[0] for line in str(piped).split("\n")] == ["id", ONE, TWO]
    assert lines(run("my-own"))[1].split()[0] == "my-own"


@pytest.mark.parametrize("width", [20, 30, 40, 60])
def test_a_table_fits_and_keeps_ids_and_outcomes(width: int) -> None:
    result = lines(run(ONE, workload=60 * "w", outcome="at_risk"), run(TWO, outcome="cancelled"), width=width)
    assert max(map(len, result)) <= width
    assert [line.split()[0] for line in result] == ["id", "abcdef01", "22222222"]
    assert "at_risk" in result[1]
    assert "cancelled" in result[2]


def test_the_longest_cells_are_cut_first() -> None:
    columns = [Column("name", "name"), Column("why", "why"), Column("what", "what")]
    result = table(columns, [{"name": "a", "why": 40 * "x", "what": 10 * "y"}], 30, NOW, headers=False)
    (line,) = result.plain.split("\n")
    assert line == f"a  {14 * 'x'}…  {10 * 'y'}"


def test_states_have_colours_on_a_terminal_only() -> None:
    result = table(COLUMNS, [run(ONE, outcome="failed"), run(TWO, outcome="at_risk")], 200, NOW)
    for terminal in (True, False):
        file = io.StringIO()
        colours: Any = "standard" if terminal else "auto"
        Console(force_terminal=terminal, width=200, file=file, color_system=colours).print(result)
        printed = file.getvalue()
        assert ("\x1b[31mfailed" in printed, "\x1b[33mat_risk" in printed, "\x1b" in printed) == (
            terminal,
            terminal,
            terminal,
        )


def test_wide_has_all_columns_and_whole_ids_and_cuts_nothing() -> None:
    (result,) = parts("wide", run(ONE, workload=200 * "w"))
    head, row = result.split("\n")
    assert head.split() == ["id", "workload", "outcome", "took", "cost", "age", "reason", "allocation"]
    assert row.startswith(f"{ONE}  {200 * 'w'}  met ")
    assert row.endswith("in time  gpus=4, cpu=0.5")


def test_the_other_forms_are_for_programs() -> None:
    items = (run(ONE), run(TWO, savings=None))
    assert parts("name", *items) == [ONE, TWO]
    assert json.loads("\n".join(parts("json", *items))) == [*items]
    assert yaml.safe_load("\n".join(parts("yaml", *items))) == [*items]
    read = [*csv.DictReader(parts("csv", *items))]
    assert [(one["id"], one["begun"], one["savings.cost"]) for one in read] == [
        (ONE, items[0]["begun"], "1.25"),
        (TWO, items[0]["begun"], ""),
    ]
    assert read[0]["ended"] == items[0]["ended"]
    assert json.loads(read[0]["decision.allocation"]) == {"gpus": 4, "cpu": 0.5}
    assert len(parts("csv", *items, headers=False)) == 2
    (escaped,) = parts("csv", run(ONE, reason="=1+1"), headers=False)
    assert ",'=1+1," in escaped


def test_an_empty_list_is_none_for_people_and_empty_for_programs() -> None:
    assert [parts(form) for form in ("table", "name", "json", "yaml")] == [["none"], [], ["[]"], ["[]"]]
    assert parts("table", headers=False) == []


def test_outcomes_of_a_verdict_are_columns_of_their_own() -> None:
    columns = [Column("version", "version"), Column.parse("report.outcomes"), Column("age", "created_at")]
    late = {"name": "late", "unit": "share", "policies": {"largest": {"mean": 0.5}, "agent": {"mean": 0.031}}}
    cost = {"name": "cost", "unit": "money", "policies": {"agent": {"mean": 4.15}}}
    items = [{"version": 2, "report": {"outcomes": [late, cost]}}, {"version": 1, "report": {}}]
    results = [{**item, "created_at": "2026-03-01T11:00:00Z"} for item in items]
    result = table(columns, results, 80, NOW).plain.split("\n")
    assert result == ["version  late   cost   age", "2        3.1 %  $4.15  1 h", "1                      1 h"]


def test_outcomes_are_named_as_users_like() -> None:
    names = ("idle_seconds", "web-chances", "done_at", "kept_until", "progress", "id", "unit")
    outcomes = [{"name": name, "unit": "share", "policies": {"agent": {"mean": 0.5}}} for name in names]
    items = [{"id": "one", "report": {"outcomes": outcomes}}, {"id": "two", "report": {"outcomes": outcomes[:1]}}]
    parts = table([Column("id", "id"), Column.parse("report.outcomes")], items, 200, NOW).plain.split("\n")
    assert [line.split() for line in parts] == [["id", *names], ["one", *("50.0", "%") * 7], ["two", "50.0", "%"]]


def test_what_is_known_of_runs_that_go_on_alone_is_empty_once_they_have_ended() -> None:
    columns = [Column("id", "id"), Column.parse("p: decision.chances"), Column.parse("granted: decision.granted.state")]
    decision = {"chances": {"iteration_seconds": 0.9}, "granted": {"state": "requested"}}
    items = [{"id": "one", "decision": decision}, {"id": "two", "decision": decision, "finished_at": "2026-03-01"}]
    parts = table(columns, items, 80, NOW).plain.split("\n")
    assert [line.split() for line in parts] == [["id", "p", "granted"], ["one", "90", "%", "requested"], ["two"]]


def test_texts_are_written_as_they_are_and_no_terminal_obeys_them() -> None:
    odd = ":x:\t\r\n[red]"
    console = Console(file=io.StringIO(newline=""), width=20)
    print_parts(console, [odd, *list_parts(COLUMNS, [run(ONE), run(odd)], "name", 80), Text(":x: two")])
    assert cast("io.StringIO", console.file).getvalue() == f"{odd}\n{ONE}\n{odd}\n:x: two\n"
    bad = "a\x1b[2J\x9b1mb\x00"
    (result,) = document({bad: {bad: bad}, "list": [bad, {bad: 1}]}, "table")
    for text in (str(result), *lines(run("one", workload=bad), run("two"))):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    assert str(result).count("a\ufffd[2J\ufffd1mb\ufffd") == 5
    (result,) = document({bad: bad}, "json")
    assert ("\x9b" in str(result), json.loads(str(result))) == (False, {bad: bad})


def test_one_object_has_every_form() -> None:
    value = {"id": ONE, "spec": {"gpus": 4, "names": ["a", "b"]}, "none": None}
    forms: list[Any] = ["table", "json", "yaml", "name", "csv"]
    fields = {form: [str(one) for one in document(value, form, ONE)] for form in forms}
    assert fields["table"] == [f"id: {ONE}\nspec:\n  gpus: 4\n  names: a, b"]
    assert json.loads(fields["json"][0]) == value == yaml.safe_load(fields["yaml"][0])
    assert fields["name"] == [ONE]
    assert [*csv.DictReader(fields["csv"])] == [{"id": ONE, "spec.gpus": "4", "spec.names": '["a", "b"]', "none": ""}]


HARD = ("yes", "null", "1e3", "1.0", "0x1", "- a", "a: b", "#", "'", "2026-01-01", "~", "=", "a #b", "y", "NaN")
TEXTS = st.text() | st.sampled_from(HARD)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(SCALARS | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20)


@given(VALUES)
def test_yaml_reads_back(value: Any) -> None:
    assert yaml.safe_load("\n".join(output.yaml(value))) == value
