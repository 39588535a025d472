"""Interactive questions for the parts of a spec, on a terminal or a pipe; empty answers take the default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import ValidationError
from rich.console import Console
from rich.prompt import Confirm, FloatPrompt, IntPrompt, Prompt

from app.kinds.contract.inputs import FieldIssue, InvalidInput
from app.kinds.iterative.spec import SECONDS, Feature, Resource

T = TypeVar("T")
DEADLINE, PACE, NOTHING = "deadline", "pace", "nothing"


class Questions:
    """Asks questions on a console; after the end of input all answers are the defaults."""

    def __init__(self, console: Console) -> None:
        self._console, self._ended = console, False

    def text(self, question: str, default: str, choices: list[str] | None = None) -> str:
        """Ask for a word, one of ``choices`` if given, and return it; an empty answer returns the default."""
        return self._prompt(Prompt.ask, question, default, choices=choices)

    def number(self, question: str, default: float) -> float:
        """Ask for a number; whole numbers are returned as int."""
        prompt = self._prompt(FloatPrompt.ask, question, float(default))
        return int(prompt) if float(prompt).is_integer() else prompt

    def count(self, question: str, default: int) -> int:
        """Ask until an integer of at least 1 is given, and return it; raises InvalidInput if the input ended before."""
        while (prompt := self._prompt(IntPrompt.ask, question, default)) < 1:
            self.refuse("must be 1 or more")
        return prompt

    def confirm(self, question: str) -> bool:
        """Ask for yes or no; the default is no."""
        return self._prompt(Confirm.ask, question, False)

    def refuse(self, words: str) -> None:
        """Print why an answer is invalid, before it is asked for again.

        Raises:
            InvalidInput: the input has ended.
        """
        if self._ended:
            raise InvalidInput([FieldIssue("", words, None)])
        self._console.print(words, style="red", markup=False, highlight=False, soft_wrap=True)

    def _prompt(self, ask: Callable[..., T], question: str, default: T, **more: Any) -> T:
        try:
            return ask(question, console=self._console, default=default, **more)
        except EOFError:
            self._ended = True
            self._console.print(f" {default}", markup=False, highlight=False)
            return default


def ask(questions: Questions, iterations: int | None, deadline: float | None) -> dict[str, Any]:
    """Ask for the resources, iterations, metrics and features of a spec, but not for ``iterations`` and ``deadline``
    (seconds) where given; raises InvalidInput if the input ends before an invalid answer is corrected."""
    resources = [_resource(questions, "cpu")]
    while questions.confirm("Is there another resource?"):
        resources.append(_resource(questions, "memory"))
    fields: dict[str, Any] = {"resources": resources}
    fields["iterations"] = iterations or questions.count("How many iterations has a run?", 100)
    fields["metrics"] = [_seconds(questions, deadline)]
    fields["features"] = []
    while questions.confirm("Does an iteration's time depend on another known number, such as a batch size?"):
        fields["features"].append(_feature(questions))
    return fields


def _resource(questions: Questions, name: str) -> dict[str, Any]:
    """Ask for the fields of a resource until they are valid, and return them; earlier answers become the defaults."""
    resource: dict[str, Any] = {"name": name, "minimum": 1, "maximum": 8, "step": 1, "price_per_hour": 1}
    while True:
        resource["name"] = questions.text("What is allocated?", resource["name"])
        resource["minimum"] = questions.number(f"The least of {resource['name']}?", resource["minimum"])
        resource["maximum"] = questions.number(f"The most of {resource['name']}?", resource["maximum"])
        resource["step"] = questions.number("In steps of?", resource["step"])
        resource["price_per_hour"] = questions.number("What does one cost an hour?", resource["price_per_hour"])
        if _validate(questions, Resource, resource):
            return resource


def _seconds(questions: Questions, deadline: float | None) -> dict[str, Any]:
    metric: dict[str, Any] = {"name": SECONDS, "unit": "s"}
    if deadline is not None:
        return {**metric, "target": deadline, "goal": "at_most", "scope": "run"}
    what = questions.text("What is to be met: a deadline of the run, a pace of iterations, nothing?", DEADLINE, _GOALS)
    if what == NOTHING:
        return metric
    scope, unit, proposed = ("run", "run", 1800) if what == DEADLINE else ("iteration", "iteration", 10)
    while (target := questions.number(f"Seconds that a whole {unit} may take?", proposed)) <= 0:
        questions.refuse("must be more than 0")
    return {**metric, "target": target, "goal": "at_most", "scope": scope}


_GOALS = [DEADLINE, PACE, NOTHING]


def _feature(questions: Questions) -> dict[str, Any]:
    feature: dict[str, Any] = {"name": "batch", "minimum": 1, "maximum": 1024}
    while True:
        feature["name"] = questions.text("What is it called?", feature["name"])
        feature["minimum"] = questions.number("Its least value?", feature["minimum"])
        feature["maximum"] = questions.number("Its largest value?", feature["maximum"])
        if _validate(questions, Feature, feature):
            return feature


def _validate(questions: Questions, model: type[Resource | Feature], result: dict[str, Any]) -> bool:
    try:
        model.model_validate(result)
    except ValidationError as error:
        issues = [
            ": ".join([*map(str, one["loc"]), one["msg"].removeprefix("Value error, ")]) for one in error.errors()
        ]
        questions.refuse("; ".join(issues))
        return False
    return True
