"""The report for people: everything in it, nothing from elsewhere, and nothing that a name could smuggle in."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.workers.evaluation.report.sample import UNAVAILABLE, report
from workers.evaluation.report.charts import Palette
from workers.evaluation.report.markup import (
    NO_BREAK,
    Markup,
    element,
    interval,
    join_names,
    join_parts,
    number,
    percent,
    percents,
    table,
)
from workers.evaluation.report.page import page
from workers.evaluation.report.tables import level_status

NASTY = "<script>alert('x')</script>\"&{{1+1}}"


class Seen(HTMLParser):
    """What a browser would find: texts, tags, and attribute values."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts, self.tags, self.attributes = list[str](), list[str](), list[tuple[str, str]]()
        self.feed(text)

    def handle_data(self, data: str) -> None:
        self.texts.append(data.replace(NO_BREAK, " "))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    @property
    def images(self) -> list[str]:
        """The plots, as SVG."""
        sources = [value for name, value in self.attributes if name == "src"]
        return [base64.b64decode(source.removeprefix("data:image/svg+xml;base64,")).decode() for source in sources]


@pytest.fixture(scope="module")
def two() -> Seen:
    """The page of two agents side by side."""
    return Seen(page(report("agent 3", "agent 5")))


def test_the_summary_says_class_and_why_it_stopped(two: Seen) -> None:
    assert "Evaluation of agent 3 and agent 5 on resnet18" in two.texts
    assert {"L2", "no level", "Stopped at L3: ", "Stopped at L0: "} <= set(two.texts)
    assert any(UNAVAILABLE in text for text in two.texts)
    assert "agent 3 is at least as good as the best heuristic up to there." in two.texts


def test_names_of_policies_are_in_words_and_a_reason_is_said_once() -> None:
    values = report("agent 3", "agent 5")
    first, second = values["candidates"]
    ends = {one["name"]: next(x for x in one["levels"] if not x["passed"]) for one in (first, second)}
    first["verdict"] = f"{first['verdict']} L3 is not reached: {ends['agent 3']['reason']}."
    observation = Seen(page(values))
    assert not [text for text in observation.texts if "model_predictive" in text]
    assert [text for text in observation.texts if "model predictive" in text]
    assert [text for text in observation.texts if text.startswith("Stopped at")] == [
        "Stopped at L0: "
    ]  # of the second one


def test_every_part_is_there(two: Seen) -> None:
    parts = [
        *("Summary", "Levels", "Agents vs. baselines", "Generalisation gap", "Learning curves"),
        *("Performance profiles", "Terms of the reward", "Agent behaviour", "Aliasing of the observations"),
        *("The tuner of static settings", "Settings", "How to read this"),
    ]
    assert [text for text in two.texts if text in parts] == [*parts, *parts]  # the contents, and the sections
    links = [value for name, value in two.attributes if name == "href" and value.startswith("#")]
    assert {f"#{value}" for name, value in two.attributes if name == "id"} == set(links)
    assert ("href", "/ui/workloads/resnet18") in two.attributes


def test_one_screen_says_what_came_out(two: Seen) -> None:
    best = "the best built-in policy (model predictive)"
    assert f"Agent 3: better than {best}. Robustness level: L2." in two.texts
    assert f"Agent 5: worse than {best}. Robustness level: none." in two.texts
    first = two.texts[: two.texts.index("Levels")]
    labels = ["agent 3", "agent 5", "best built-in policy", "next best rule"]
    assert [text for text in first if text in labels] == labels
    assert first[(at := first.index("agent 3") + 1) : at + 3] == ["4.2 %", "3.14", "−0.105"]
    tied = report("agent 3")
    tied["levels"][2]["policies"]["agent 3"]["advantage"] = {"mean": 0.0, "low": -0.0005, "high": 0.0005}
    assert f"Agent 3: tied with {best}: nothing to gain here. Robustness level: L2." in Seen(page(tied)).texts


@pytest.mark.parametrize(("rule", "label"), [("hold", "best fixed allocation"), ("sjf", "best static settings")])
def test_an_outdated_agent_is_not_assessed_and_static_settings_are_named_as_the_kind_has_them(
    rule: str, label: str
) -> None:
    values = report("agent 3", "agent 5")
    values["policies"].append({"name": rule, "role": "heuristic", "title": rule})
    values["candidates"][0] |= {"outdated": "outdated: retrain", "levels": []}
    values["policies"].append({"name": "tuner", "role": "tuner", "title": "tuned"})
    for level in values["levels"]:
        if level["available"]:
            level["policies"]["tuner"] = level["policies"]["threshold"]
    texts = Seen(page(values)).texts
    first = texts[: texts.index("Levels")]
    assert "Agent 3 is not assessed: outdated: retrain." in first
    assert "agent 3" not in first  # beside the others
    assert {"agent 5", label, "tuner"} <= set(first)


def test_figures_stand_with_their_intervals(two: Seen) -> None:
    assert "−0.1050 [−0.1070, −0.1030]" in two.texts
    assert "+0.0050 [+0.0030, +0.0070]" in two.texts
    assert "50.5 % [49.5 %, 51.5 %]" in two.texts


def test_what_users_count_stands_before_returns(two: Seen) -> None:
    heads = [text for text in two.texts if text in ("missed deadlines", "GPU-hours", "return", "IQM")]
    assert heads[:3] == ["missed deadlines", "GPU-hours", "return"]
    assert heads[3:8] == ["missed deadlines", "GPU-hours", "return", "return", "IQM"]
    assert "4.2 % [4.0 %, 4.4 %]" in two.texts
    assert "3.14 [3.12, 3.16]" in two.texts


def test_a_report_from_before_outcomes_is_still_drawn() -> None:
    earlier = report("agent 3")
    earlier.pop("outcomes")
    assert "missed deadlines" not in Seen(page(earlier)).texts


def test_the_page_needs_nothing_from_elsewhere(two: Seen) -> None:
    assert not {"script", "link", "iframe", "object", "form"} & set(two.tags)
    assert all(value.startswith("data:image/svg+xml;base64,") for name, value in two.attributes if name == "src")
    links = [value for name, value in two.attributes if name == "href"]
    assert [link for link in links if not link.startswith("#")] == ["/ui/workloads/resnet18"]
    assert not re.search(r"url\(|@import", page(report()))


def test_the_plots_name_every_policy(two: Seen) -> None:
    assert len(two.images) == 2 + 5 + 1 + 4 + 2 + 1  # advantage, curves; levels; profile; terms; heat maps; tuner
    names = {"agent 3", "agent 5", "model predictive", "threshold"}
    assert all(names <= texts_of(image) for image in two.images[1:6])
    assert all("http://" not in image.replace("http://www.w3.org/", "") for image in two.images)


def nodes(image: str) -> list[ET.Element]:
    return list(ET.fromstring(image).iter())  # noqa: S314 (drawn by the code under test)


def texts_of(image: str) -> set[str]:
    return {"".join(node.itertext()) for node in nodes(image) if node.tag.endswith("text")}


def test_what_was_given_is_escaped() -> None:
    values = report(NASTY, workload=NASTY)
    values["tuner"]["settings"] = {NASTY: NASTY}
    values["levels"][0]["title"] = values["candidates"][0]["verdict"] = NASTY
    values["candidates"][0]["aliasing"]["examples"][0]["actions"] = {NASTY: 1}
    values["candidates"][0]["levels"][0]["reason"] = values["candidates"][0]["heat_map"]["x"]["name"] = NASTY
    text = page(values)
    assert "<script" not in text
    observation = Seen(text)
    assert "script" not in observation.tags
    assert any(NASTY in result for result in observation.texts)
    for image in observation.images:
        assert not [node for node in nodes(image) if node.tag.endswith("script")]
    assert any(NASTY in texts_of(image) for image in observation.images)


@pytest.mark.parametrize("missing", ["curve", "heat_map", "aliasing"])
def test_what_an_agent_lacks_is_left_out(missing: str) -> None:
    values = report()
    values["candidates"][0][missing] = None
    assert len(Seen(page(values)).images) == 14 - (missing != "aliasing")


def test_a_page_of_nothing_but_reasons_is_still_a_page() -> None:
    values: dict[str, Any] = report()
    for level in values["levels"]:
        level.update(available=False, reason="nothing could be played", policies={}, best_heuristic=None, optimum=None)
    for level in values["candidates"][0]["levels"]:
        level.update(passed=False, advantage=None, probability_of_improvement=None, gap=None)
    values.update(profiles=[], tuner={"settings": None, "reason": "nothing to tune", "trials": 0})
    values["held_out"] = {"reason": "the 2 held-out executions can't carry a model", "note": None}
    texts = Seen(page(values)).texts
    assert texts.count("Not played: nothing could be played") == 6
    assert "Not tuned: nothing to tune" in texts
    assert "Nothing held out: the 2 held-out executions can't carry a model" in texts


def test_a_level_beyond_the_class_is_no_pass() -> None:
    passed = {"level": "L4", "passed": True, "advantage": {}}
    assert level_status(passed, "L4") == "passed"
    assert level_status(passed, "L2") == "beyond"
    assert level_status({**passed, "passed": False}, "L2") == "failed"
    assert level_status({**passed, "passed": False, "advantage": None}, "L2") == "unknown"


def test_figures_have_as_many_digits_as_carry_something() -> None:
    shown = interval({"mean": 8.5437e-05, "low": 7.3177e-05, "high": 9.8741e-05})
    assert shown == f"0.000085 [0.000073,{NO_BREAK}0.000099]"  # a line ends after the mean at most
    assert interval({"mean": -1e-17, "low": -2e-17, "high": 1e-17}, signed=True) == f"0 [0,{NO_BREAK}0]"
    assert interval({"mean": 1234.5, "low": 1200.0, "high": 1300.0}) == f"1,234 [1,200,{NO_BREAK}1,300]"
    assert (interval(None), number(None), percent(None), percents(None)) == ("–", "–", "–", "–")
    assert (number(-0.012341), number(1e-17), percent(-0.015)) == ("−0.01234", "0", "−1.5 %")
    assert (join_names([]), join_names(["a"]), join_names(["a", "b", "c"])) == ("", "a", "a, b and c")


def test_agents_have_colours_of_their_own() -> None:
    names = [f"agent {i}" for i in range(8)]
    palette = Palette(report(*names)["policies"])
    assert palette.own == names
    assert len({palette.colours[name] for name in palette.names}) == len(palette.names)


def test_markup_escapes_all_but_its_own() -> None:
    markup = element("p", "<b>", element("b", "&"), class_='a"b')
    assert markup == '<p class="a&quot;b">&lt;b&gt;<b>&amp;</b></p>'
    assert join_parts(["<", Markup("<br>")]) == "&lt;<br>"
    assert "<i>" not in table(["<i>"], [["<i>", "<i>"]], marked=[0])


def test_page_and_plots_follow_a_dark_theme() -> None:
    text = page(report())
    assert "@media (prefers-color-scheme: dark)" in text
    images = Seen(text).images
    assert images
    assert all("@media (prefers-color-scheme: dark)" in image for image in images)
