"""Recommendations for objects of kind ``VerticalPodAutoscaler`` that name Steward as their recommender.

Kubernetes' autoscaler lets an object choose its recommender (``spec.recommenders``); whoever has that name writes
``status.recommendation``, and the autoscaler's updater and admission controller apply it, in place or by eviction.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from steward_client.kubernetes import Conversion, parse_quantity, quantity

from .amounts import Amounts, Subject, SubjectError

ANNOTATIONS = "steward/"
RECOMMENDER = "steward"
EVERY_CONTAINER = "*"
PROVIDED = "RecommendationProvided"
Object = Mapping[str, Any]


class Wanted(NamedTuple):
    """What the annotations of an object ask for.

    Attributes:
        container: whose requests are recommended.
        conversions: by which decided amounts become Kubernetes' resources.
    """

    subject: Subject
    container: str
    conversions: tuple[Conversion, ...]

    @classmethod
    def of(cls, vpa: Object) -> Wanted:
        """Read them.

        Raises:
            SubjectError: one is missing.
            QuantityError: the resources can't be read.
        """
        notes: Mapping[str, str] = vpa["metadata"].get("annotations") or {}
        named = {name: notes[ANNOTATIONS + name] for name in ("workload", "run") if notes.get(ANNOTATIONS + name)}
        subject = Subject.of(named, f"annotations {ANNOTATIONS}…")
        for name in ("container", "resources"):
            if not notes.get(ANNOTATIONS + name):
                raise SubjectError(f"annotation {ANNOTATIONS}{name} is missing")
        conversions = tuple(map(Conversion.parse, notes[ANNOTATIONS + "resources"].split(",")))
        return cls(subject, notes[ANNOTATIONS + "container"], conversions)


def ours(vpa: Object, name: str = RECOMMENDER) -> bool:
    """Whether an object names this recommender."""
    return any(one.get("name") == name for one in vpa["spec"].get("recommenders") or ())


def recommendation(vpa: Object, wanted: Wanted, decided: Amounts) -> Object:
    """``status.recommendation``: what was decided, between what the object allows.

    Lower and upper bound are the target itself: the updater acts on whatever lies outside of them.

    Raises:
        SubjectError: a resource was not decided on.
    """
    missing = [one.resource for one in wanted.conversions if one.resource not in decided]
    if missing:
        raise SubjectError(f"annotation {ANNOTATIONS}resources: {missing[0]!r} is none of {', '.join(sorted(decided))}")
    uncapped = {one.name: one.of(decided[one.resource]) for one in wanted.conversions}
    target = {name: _within(text, name, _policy(vpa, wanted.container)) for name, text in uncapped.items()}
    bounds = {"target": target, "lowerBound": target, "upperBound": target, "uncappedTarget": uncapped}
    return {"containerRecommendations": [{"containerName": wanted.container, **bounds}]}


def _policy(vpa: Object, container: str) -> Object:
    """What the object allows a container: its own policy, else that of all."""
    policies = (vpa["spec"].get("resourcePolicy") or {}).get("containerPolicies") or ()
    by_name = {one.get("containerName", EVERY_CONTAINER): one for one in policies}
    found: Object = by_name.get(container) or by_name.get(EVERY_CONTAINER) or {}
    return found


def _within(text: str, name: str, policy: Object) -> str:
    amount = parse_quantity(text)
    for bound, nearest in (("minAllowed", max), ("maxAllowed", min)):
        limit = (policy.get(bound) or {}).get(name)
        if limit is not None:
            amount = nearest(amount, parse_quantity(str(limit)))
    return quantity(Decimal(amount))


def conditions(old: Object, now: str, reason: str = "", message: str = "") -> list[Object]:
    """All conditions of a status; ``RecommendationProvided`` is true without a reason, and its time is its change's."""
    before = list(old.get("conditions") or ())
    status = "False" if reason else "True"
    same = [one for one in before if one.get("type") == PROVIDED and one.get("status") == status]
    since = same[0]["lastTransitionTime"] if same else now
    told = {"reason": reason, "message": message} if reason else {}
    provided = {"type": PROVIDED, "status": status, "lastTransitionTime": since, **told}
    return [*(one for one in before if one.get("type") != PROVIDED), provided]
