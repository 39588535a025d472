"""The page of figures, and how benchmarks are recorded."""

import json
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import page

ROW = {
    "name": "a | b",
    "value": 15_420,
    "unit": "1/s",
    "peer": "other",
    "peer_value": 0.51234,
    "ratio": 2.0,
    "goal": "x",
}


def test_the_page_is_of_the_figures_that_are_committed() -> None:
    folder = Path(page.__file__).parent
    rows = json.loads((folder / "results.json").read_text())["results"]
    assert (folder / "RESULTS.md").read_text() == page.page(rows), "python -m benchmarks.page writes it anew"


def test_a_row_is_a_line_of_its_benchmarks_table() -> None:
    text = page.page([{"benchmark": "speed", "machine": "2 cores", "commit": "1234567", **ROW}])
    assert "## speed\n\n2 cores, 1234567\n" in text
    assert "| a ¦ b | 15,420 1/s | other: 0.5123 | 2 | x |" in text


def test_a_part_takes_the_place_of_its_own_rows_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(benchmarks, "write", lambda: None)
    for benchmark, part, value in (("a", "x", 1), ("a", "y", 2), ("b", None, 3), ("a", "x", 4)):
        benchmarks.record(benchmark, part, [ROW | {"value": value}], "1234567")
    rows = json.loads((tmp_path / "results.json").read_text())["results"]
    assert [(row["benchmark"], row.get("part"), row["value"]) for row in rows] == [
        ("a", "y", 2),
        ("b", None, 3),
        ("a", "x", 4),
    ]


@pytest.mark.parametrize(("part", "text"), [("nothing", "no benchmark is called"), ("algorithms:moon", "has no part")])
def test_what_there_is_none_of_is_refused(part: str, text: str) -> None:
    with pytest.raises(SystemExit, match=text):
        benchmarks.main([part])
