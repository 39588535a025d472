"""Scores of waiting tasks by the published formulas."""

import numpy as np
import pytest

from app.kinds.workflow.scheduling.rules import RULES, scores

NOW, SUBMIT, REQUESTED, PROCESSORS = 1000.0, np.array([100.0]), np.array([400.0]), np.array([16])
EXPECTED = {
    "fcfs": 100.0,
    "sjf": 400.0,
    "ljf": -400.0,
    "saf": 6400.0,
    "smallest": 16.0,
    "lxf": -1300 / 400,
    "wfp3": -((900 / 400) ** 3) * 16,
    "unicep": -900 / (4 * 400),
    "f1": np.log10(400) * 16 + 870 * 2,
    "f2": 20 * 16 + 25600 * 2,
    "f3": 400 * 16 + 6.86e6 * 2,
    "f4": 400 * 4 + 5.3e5 * 2,
}


CHANGING = {"lxf", "wfp3", "unicep"}
"""Rules whose scores change while tasks wait."""


@pytest.mark.parametrize("name", RULES)
def test_a_score_by_hand(name: str) -> None:
    result = scores(RULES.index(name), NOW, SUBMIT, REQUESTED, PROCESSORS)
    assert result == pytest.approx([EXPECTED[name]])


@pytest.mark.parametrize("name", RULES)
def test_scores_vary_where_it_is_said_so_and_are_finite_at_the_edges(name: str) -> None:
    rule = RULES.index(name)
    now, later = (scores(rule, at, SUBMIT, REQUESTED, PROCESSORS)[0] for at in (NOW, NOW + 50))
    assert (now != later) == (name in CHANGING)
    edge = scores(rule, 0.0, np.zeros(1), np.zeros(1), np.ones(1, np.int64))
    assert np.isfinite(edge).all()


def test_one_processor_counts_as_two_in_unicep() -> None:
    one, two = (scores(RULES.index("unicep"), NOW, SUBMIT, REQUESTED, np.array([n]))[0] for n in (1, 2))
    assert one == two


def test_an_unknown_rule_is_an_error() -> None:
    with pytest.raises(ValueError, match="no such rule"):
        scores(len(RULES), NOW, SUBMIT, REQUESTED, PROCESSORS)
