"""What pages say of measurements, of messages and of the schema is what these are."""

from __future__ import annotations

import ast
import importlib
import json
import re
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from app.kinds.registry import KINDS
from tests.documents.blocks import ROOT, blocks
from workers.evaluation.statistics import mean_interval, share_interval

MADE = ROOT / "docs/making"
SOURCES = ("app", "workers", "clients/python/steward_client")
DEMO = re.compile(
    r"(?:idle|busy) \d+, deadline .*: steward (?P<cost>[\d.]+) \((?P<margin>[+-][\d.]+) s\), careful [\d.]+ % [\d.]+ "
    r"\((?P<careful>[+-][\d.]+) s\), best static [\d.]+ % (?P<best>[\d.]+) .*?, largest [\d.]+ % (?P<largest>[\d.]+) "
)
LENGTHS = {"docs/explanation/concepts.md": 500, "README.md": 1_000}
LENGTHS |= {"docs/explanation/learning.md": 1_852, "docs/how-to/cluster.md": 1_836}
LENGTHS |= {"docs/how-to/security.md": 1_540, "docs/how-to/serving.md": 1_408}
"""Words that a page may have."""


def making(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(MADE))
    return importlib.import_module(name)


def results(benchmark: str) -> list[dict[str, Any]]:
    rows = json.loads((ROOT / "benchmarks/results.json").read_text())["results"]
    return [row for row in rows if row["benchmark"] == benchmark]


def change(mean: float, low: float, high: float) -> str:
    """A change of cost and its interval, in per cent, as the README writes it: none has a sign."""
    texts = [f"{value:+.1f}".replace("-", "−") for value in (mean, low, high)]
    return f"{texts[0]} % ({texts[1]} to {texts[2]})"


@pytest.mark.parametrize(("page", "most"), LENGTHS.items())
def test_pages_stay_short(page: str, most: int) -> None:
    assert len((ROOT / page).read_text().split()) <= most


def test_the_readme_says_what_savings_were_measured() -> None:
    rows = results("savings")
    outcome = 0
    for row in rows:
        if not (result := re.match(r"(.*): deadlines met, (\d+ of \d+) runs, 95 % (\d+)% to (\d+)%", row["name"])):
            continue
        costs = []
        for other in rows:
            cheaper = re.match(rf"{re.escape(result[1])}: cheaper than .*, 95 % (\S+) to (\S+) %", other["name"])
            costs += [change(-other["value"], -float(cheaper[2]), -float(cheaper[1]))] if cheaper else []
        line = f"| {result[1]} | {result[2]} ({result[3]} to {result[4]} %) | {' | '.join(costs)} |"
        assert len(costs) == 2
        assert line in (ROOT / "README.md").read_text(), line
        outcome += 1
    assert outcome == 4


def test_the_readme_says_what_demonstrations_saved() -> None:
    demos = [match for row in results("demos") if (match := DEMO.match(row["name"]))]
    cost = np.array([float(one["cost"]) for one in demos])
    met = np.array([float(one["margin"]) >= 0 for one in demos], float)
    others = [np.array([float(one[who]) for one in demos]) for who in ("largest", "best")]
    shares = [mean_interval(100 * (cost / other - 1)) for other in others]
    costs = [change(one["mean"], one["low"], one["high"]) for one in shares]
    interval = share_interval(met)
    text = f"{met.sum():.0f} of {len(met)} ({100 * interval.low:.0f} to {100 * interval.high:.0f} %)"
    assert f"| real training | {text} | {' | '.join(costs)} |" in (ROOT / "README.md").read_text()
    assert [one["careful"] for one in demos if not one["careful"].startswith("-")] == []
    assert len(demos) == 20


@cache
def written() -> tuple[str, ...]:
    """Every text of the code; what is put into it is one character."""
    texts = []
    for path in [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py") if "generated" not in path.parts]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [getattr(part, "value", "") if isinstance(part, ast.Constant) else "\0" for part in node.values]
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return tuple(texts)


def is_written(message: str) -> bool:
    """Whether the code has a text with the parts of a message, in their order; `…` stands for anything."""
    pattern = re.compile(".*".join(re.escape(part.strip()) for part in message.split("…")), re.DOTALL)
    return any(pattern.search(text) for text in written())


def test_messages_in_troubleshooting_are_those_of_the_code() -> None:
    page, _, _ = (ROOT / "docs/how-to/troubleshooting.md").read_text().partition("## No message")
    messages = re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)
    assert len(messages) >= 25
    assert len(set(messages)) == len(messages)
    assert [one for one in messages if not is_written(one)] == []
    assert all(len(one.replace("…", "")) > 15 for one in messages)
    assert not is_written("no iteration was recognized …")


def test_what_the_page_of_verdicts_explains_is_what_is_printed() -> None:
    page = (ROOT / "docs/how-to/verdict.md").read_text()
    explained = re.findall(r"`([^`]+)`", "\n".join(re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE)))
    assert len(explained) >= 15
    assert [one for one in explained if not is_written(one)] == []
    assert not is_written("would be found in …")


def test_every_field_of_every_spec_is_explained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spec_reference = making("spec_reference", monkeypatch)
    schema = json.loads((ROOT / "openapi.json").read_text())
    schemas = schema["components"]["schemas"]
    assert set(spec_reference.SPECS.values()) == set(KINDS)
    used = {part for name in spec_reference.SPECS for part in spec_reference.used(schema, name)}
    fields = {f"{name}.{field}": (name, field) for name in used for field in schemas[name]["properties"]}
    assert [one for one, place in fields.items() if not spec_reference.meaning(schemas, *place)] == []
    assert spec_reference.MEANING.keys() <= fields.keys()
    described = {one for one, (name, field) in fields.items() if "description" in schemas[name]["properties"][field]}
    assert spec_reference.MEANING.keys() & described == set()


def test_each_kind_has_one_example_with_every_field() -> None:
    """That each registers is tested with all other specs, in `test_run.py`."""
    examples = {block.schema: json.loads(block.text) for block in blocks("docs/reference/spec.md") if block.schema}
    assert {example["kind"] for example in examples.values()} == set(KINDS)
    for example in examples.values():
        assert example.keys() == KINDS[example["kind"]].spec.model_fields.keys()


def contrast(first: str, second: str) -> float:
    """Contrast of two colours by WCAG 2, 1 to 21."""

    def luminance(colour: str) -> float:
        parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_the_architecture_is_drawn_by_its_code_and_readable_on_both_grounds(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = making("architecture", monkeypatch)
    assert (ROOT / "docs/figures/architecture.svg").read_text() == drawn.architecture()
    assert min(contrast(fill, drawn.TEXT) for fill in (drawn.SERVICE, drawn.OTHER, drawn.STEP)) >= 4.5
    assert min(contrast(drawn.LINE, ground) for ground in ("#ffffff", "#1e2129")) >= 3
    assert contrast("#ffffff", "#000000") == pytest.approx(21)


def test_the_concepts_are_ten_nouns() -> None:
    page = (ROOT / "docs/explanation/concepts.md").read_text()
    nouns = ["workload", "sample", "model", "agent", "run", "decision", "evaluation", "job", "policy", "verdict"]
    assert re.findall(r"^\| \*\*(\w+)\*\* \|", page, re.MULTILINE) == nouns
