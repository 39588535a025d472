"""Kubernetes label selectors, such as ``workload=resnet18,resource in (gpus,cpus),!canary``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Labels = Mapping[str, str]
Selector = Callable[[Labels], bool]
MOST_CHARACTERS = 4_096
_NAME = r"[A-Za-z0-9](?:[\w./-]*[A-Za-z0-9])?"
_VALUE = r"[\w.-]*"
_ONE = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<gone>{_NAME})"
    rf"|(?P<name>{_NAME})\s*(?:(?P<sign>==|=|!=)\s*(?P<value>{_VALUE})"
    rf"|\s(?P<set>in|notin)\s*\((?P<values>[\s\w.,-]*)\))?)\s*(?:,|$)"
)


class SelectorError(ValueError):
    """A text is no label selector; the message has the accepted forms."""


def selector(text: str) -> Selector:
    """Compile a selector to a function that tells whether labels match; an empty text matches all. Raises SelectorError
    if the text is malformed, or longer than 4,096 characters."""
    if len(text) > MOST_CHARACTERS:
        raise SelectorError(f"labelSelector: {len(text):,} characters; accepted are up to {MOST_CHARACTERS:,}")
    rules: list[Selector] = []
    at = 0
    while at < len(text):
        match = _ONE.match(text, at)
        if match is None or match.end() == at:
            raise SelectorError(
                f"labelSelector: can't be read from {text[at : at + 40]!r} on; accepted: a=b, a!=b, a in (b,c), a, !a"
            )
        rules.append(_rule(match))
        at = match.end()
    return lambda labels: all(rule(labels) for rule in rules)


def _rule(match: re.Match[str]) -> Selector:
    name = match["name"] or match["gone"]
    if match["absent"]:
        return lambda labels: name not in labels
    if match["sign"] is None and match["set"] is None:
        return lambda labels: name in labels
    values = {match["value"]} if match["sign"] else {value.strip() for value in match["values"].split(",")}
    excluded = match["sign"] == "!=" or match["set"] == "notin"
    return lambda labels: (labels.get(name) in values) != excluded
