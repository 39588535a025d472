"""The prior's population, fitted to measured curves."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from app.kinds.iterative.prior import LAWS, POPULATION, population
from workers.kinds.iterative.pretrain import COLUMNS, MEMBERS, Curve, law_weights, members, read_curves


def _curve(application: str, law: str, share: float, seed: int = 0) -> Curve:
    amounts = np.geomspace(1, 32, 6)
    noise = 0.02 * np.random.default_rng(seed).standard_normal(6)
    return Curve(
        application, amounts, 7 * np.exp(LAWS[law](amounts[:, None] / 5.66, np.array([[share]]))[:, 0] + noise)
    )


def test_members_are_those_of_the_population() -> None:
    curves = [_curve("fast", "amdahl", 0.95), *(_curve("slow", "amdahl", 0.2, seed) for seed in range(9))]
    weights = law_weights(curves)
    assert weights.shape == (len(LAWS), 21)
    np.testing.assert_allclose(weights.sum(), 1)
    chosen = np.array([share for _, share in members(weights)])
    assert len(chosen) == MEMBERS
    assert 4 <= (chosen < 0.4).sum() <= 9  # half, however many curves an application has
    assert 4 <= (chosen > 0.7).sum() <= 9


def test_the_laws_of_the_curves_are_found() -> None:
    weights = law_weights([_curve(f"knee-{n}", "knee_100", 0.9, n) for n in range(20)])
    assert weights.sum(axis=1).argmax() == list(LAWS).index("knee_100")


def test_what_is_shipped_is_what_the_command_writes() -> None:
    shipped = json.loads(POPULATION.read_text())
    assert len(population()) == MEMBERS
    assert {name for name, _ in population()} <= set(LAWS)
    assert shipped["command"].startswith("steward pretrain ")
    assert not any("ellis" in name or "c3o" in name for name in shipped["applications"])  # they are left for judging it


def _run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "app.cli", *words], capture_output=True, text=True)


def _write(path: Path, rows: list[tuple[object, ...]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    return path


def test_the_command_reads_a_file_and_writes_one(tmp_path: Path) -> None:
    rows = [(app, n, a, s) for n, app in enumerate("ab") for a, s in ((1, 9), (2, 5), (2, 7), (4, 3))]
    curves, out = _write(tmp_path / "own.csv", [*rows, ("c", 0, 1, 9)]), tmp_path / "made.json"
    done = _run("pretrain", str(curves), "--out", str(out))
    assert (done.returncode, done.stderr) == (0, f"{out}: {MEMBERS} members from 2 curves of 2 applications\n")
    body = json.loads(out.read_text())
    assert (body["applications"], body["curves"]) == (["a", "b"], 2)
    np.testing.assert_array_equal(read_curves(curves)[0].seconds, [9, 6, 3])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("a", "", 1, 9), "line 2: curve: missing"),
        (("a", 0, "none", 9), "line 2: amount: must be a number greater than 0, not 'none'"),
        (("a", 0, 1, -9), "line 2: seconds: must be a number greater than 0, not '-9'"),
        (("a", 0, 1, "inf"), "line 2: seconds: must be a number greater than 0, not 'inf'"),
        (("a", 0, 1, 9), "has no curve of 3 amounts"),
    ],
)
def test_what_is_no_curve_is_refused(tmp_path: Path, row: tuple[object, ...], words: str) -> None:
    out = tmp_path / "made.json"
    done = _run("pretrain", str(_write(tmp_path / "own.csv", [row])), "--out", str(out))
    assert done.returncode == 2
    assert words in done.stderr
    assert not out.exists()
