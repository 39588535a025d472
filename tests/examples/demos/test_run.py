"""``steward demo`` in simulated time, against a real service: what it prints, writes and answers."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.servers import clean_environment

pytestmark = pytest.mark.slow  # a service, a training and four runs
NAMES = ["steward", "careful", "best_static", "largest"]


def demo(folder: Path, *options: str, columns: int = 80) -> "subprocess.CompletedProcess[str]":
    environment = clean_environment({"COLUMNS": str(columns), "TMPDIR": str(folder)})
    line = [
        sys.executable,
        "-m",
        "app.cli",
        "demo",
        "--simulated",
        "--budget",
        "10000",
        "--output",
        str(folder / "out"),
    ]
    return subprocess.run([*line, *options], capture_output=True, text=True, env=environment, timeout=280, check=False)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple["subprocess.CompletedProcess[str]", Path]:
    folder = tmp_path_factory.mktemp("demo")
    result = demo(folder, "--json")
    assert result.returncode == 0, result.stderr
    return result, folder / "out"


@pytest.fixture(scope="module")
def answer(played: tuple["subprocess.CompletedProcess[str]", Path]) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(played[0].stdout)
    return body


def test_json_is_one_object_with_the_four_allocations(answer: dict[str, Any]) -> None:
    assert [one["name"] for one in answer["allocations"]] == NAMES
    assert answer["simulated"] is True
    for one in answer["allocations"]:
        assert one["met"] == (one["elapsed_seconds"] <= answer["deadline_seconds"])
        assert one["cost"] == pytest.approx(one["cpu_seconds"] * answer["price_per_cpu_second"])


def test_the_story_holds(answer: dict[str, Any]) -> None:
    steward, careful, best, largest = answer["allocations"]
    assert steward["met"]
    assert not careful["met"]
    assert best["met"]
    assert steward["cost"] < best["cost"] < largest["cost"]
    assert largest["saved"]["low"] <= 1 - steward["cost"] / largest["cost"] <= largest["saved"]["high"]


def test_it_ends_with_one_screen_of_80_columns(played: tuple["subprocess.CompletedProcess[str]", Path]) -> None:
    text = played[0].stderr
    assert all(len(line) <= 80 for line in text.splitlines())
    screen = text[text.index("Summary") :].splitlines()
    assert len(screen) <= 40
    output = "\n".join(screen)
    assert "All figures are simulated." in output
    assert re.search(r"fixed by hand, \d+ % .*MISSED by", output)
    assert re.search(r"Steward .*met by", output)
    assert re.search(r"\d+% less \(-?\d+% to \d+%\) than largest, 90 %", output)
    assert "Changed for save iterations 3" in output


def test_figures_and_picture_are_written(played: tuple["subprocess.CompletedProcess[str]", Path]) -> None:
    folder = played[1]
    rows = json.loads((folder / "demo.json").read_text())["rows"]
    assert list(rows) == NAMES
    assert {len(one) for one in rows.values()} == {24}
    steward = rows["steward"]
    saving = [row["percent"] for row in steward if row["phase"] == "save"]
    training = [row["percent"] for row in steward if row["phase"] == "train"]
    assert sum(saving) / len(saving) < sum(training) / len(training)
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert '<script src="http' not in (folder / "demo.html").read_text()
