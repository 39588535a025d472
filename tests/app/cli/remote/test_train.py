"""What `steward train` says of a training and of what came of it."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from app.cli.remote.train import bracket, headroom, show, words

LIVE = {
    "state": "running",
    "phase": "learning",
    "algorithm": "ppo",
    "seed": 3,
    "trials": 3,
    "steps": 10_000,
    "episode_return": 0.4644,
    "loss": 0.02291,
    "exploration": None,
    "steps_per_second": 37_313.6,
    "eta_seconds": 12.3,
}
BRACKET: list[dict[str, Any]] = [
    {"algorithm": "ppo", "seed": 3, "share": 1.0, "steps": 90_000, "score": -0.034, "ended": None, "chosen": True},
    {"algorithm": "dqn", "seed": 3, "share": 0.1, "steps": 9_000, "score": -0.05, "ended": "number 2", "chosen": False},
    {
        "algorithm": "planner",
        "seed": None,
        "share": 1.0,
        "steps": 0,
        "score": None,
        "ended": "big",
        "chosen": False,
    },
]


MEAN = {"mean": 12.0, "low": 11.0, "high": 13.0}


def report(**more: Any) -> dict[str, Any]:
    return {
        "return": {"mean": -0.03, "low": -0.031, "high": -0.029},
        "gap_to_optimum": 0.0123,
        "reason": "promoted: it is good",
        "bracket": BRACKET,
        **more,
    }


def printed(agent: dict[str, Any]) -> str:
    console = Console(record=True, width=160)
    show(agent, console)
    return console.export_text()


def test_a_learner_tells_who_it_is_and_how_fast() -> None:
    text = words(LIVE)
    assert text == "running, about 12 s left, ppo seed 3, training return 0.464, loss 0.0229, 37,314 steps/s"
    assert words({"state": "running", "eta_seconds": None, "phase": "judging"}) == "running, judging"
    assert words({**LIVE, "trials": 1, "exploration": 0.05, "eta_seconds": None}).startswith(
        "running, ppo, training return"
    )


def test_every_trial_is_a_row_with_why_it_ended() -> None:
    console = Console(record=True, width=160)
    console.print(bracket(BRACKET))
    rows = [line for line in console.export_text().splitlines() if any(b["algorithm"] in line for b in BRACKET)]
    assert len(rows) == 3
    assert "chosen" in rows[0]
    assert "-0.03400" in rows[0]
    assert "number 2" in rows[1]
    assert "9,000" in rows[1]
    assert "–" in rows[2]


@pytest.mark.parametrize(("champion", "reported"), [(True, "champion"), (False, "never promoted")])
def test_the_verdict_is_told_in_words(champion: bool, reported: str) -> None:
    text = printed({"version": 4, "algorithm": "ppo", "champion": champion, "report": report()})
    assert f"agent 4: ppo, {reported}" in text
    assert "1.23 % from the exact optimum" in text
    assert "promoted: it is good" in text
    rows = [{"name": "lateness", "unit": "s", "policies": {"agent": MEAN, "pid": {**MEAN, "mean": 31.0}}}]
    counted = printed({"version": 4, "algorithm": "ppo", "champion": champion, "report": report(outcomes=rows)})
    assert counted.index("lateness") < counted.index("promoted: it is good") < counted.index("return -0.03000")
    assert ["lateness", "12", "s", "31", "s"] in [line.split() for line in counted.splitlines()]
    learned = {"algorithm": "ppo", "seed": 2, "return": report()["return"], "gap_to_optimum": 0.0456}
    alone = printed({"version": 4, "algorithm": "planner", "champion": champion, "report": report(learned=learned)})
    assert "ppo by itself, seed 2: return -0.03000" in alone
    assert "4.56 % from the exact optimum" in alone
    assert "by itself" not in text
    single = printed({"version": 4, "algorithm": "ppo", "champion": champion, "report": report(bracket=BRACKET[:1])})
    assert "chosen" not in single


ROOM: dict[str, Any] = {
    **{
        name: {"mean": mean, "low": mean, "high": mean}
        for name, mean in (("gain", 1.0), ("left", 1.0), ("beyond", 2.0))
    },
    "text": "tuned by 1.0 %",
    "knows": "each run's law",
    "share_won": {"mean": 0.5, "low": 0.25, "high": 0.75},
}


def test_the_headroom_is_a_bar_with_the_share_that_was_won() -> None:
    assert headroom(ROOM).splitlines() == [
        f"headroom {'█' * 13}{'▒' * 13}{'░' * 13} tuned by 1.0 %",
        "the agent won 50 % (95 % interval 25 % to 75 %) of what knowing each run's law would give",
    ]
    lengths = headroom({**ROOM, "knows": "true lengths"})
    assert lengths.endswith("25 % to 75 %) of what knowing true lengths would give")
    unknown = headroom({**ROOM, "beyond": None, "share_won": None})
    assert unknown == f"headroom {'█' * 20}{'▒' * 20} tuned by 1.0 %"
    nothing = {name: {"mean": -0.1} for name in ("gain", "left", "beyond")}
    assert headroom({**ROOM, **nothing, "share_won": None}) == "headroom  tuned by 1.0 %"
    assert "headroom █" in printed(
        {"version": 4, "algorithm": "ppo", "champion": True, "report": report(headroom=ROOM)}
    )


def test_a_training_that_goes_on_tells_what_its_last_window_came_to() -> None:
    waiting = {"state": "queued", "phase": "waiting", "windows": 3, "last": {"verdict": "published"}}
    assert words(waiting) == "queued, waiting, window 3: published"
