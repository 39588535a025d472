"""Recommendations for ``VerticalPodAutoscaler`` objects that name Steward as their recommender.

An object chooses its recommender by ``spec.recommenders``; the recommender writes ``status.recommendation``, and
Kubernetes' updater and admission controller apply it, in place or by eviction.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from steward_client.kubernetes import Conversion, QuantityError, parse_quantity, quantity

from .amounts import Amounts, Subject, SubjectError

ANNOTATIONS = "steward/"
RECOMMENDER = "steward"
EVERY_CONTAINER = "*"
PROVIDED = "RecommendationProvided"
Object = Mapping[str, Any]


class RecommendationRequest(NamedTuple):
    """The request in an object's annotations.

    Attributes:
        subject: the run, or the workload with all its live runs.
        container: name of the container whose requests are recommended.
        conversions: conversions of decided amounts to Kubernetes resources.
    """

    subject: Subject
    container: str
    conversions: tuple[Conversion, ...]

    @classmethod
    def of(cls, vpa: Object) -> RecommendationRequest:
        """Parse an object's annotations.

        Raises:
            SubjectError: one is missing or malformed.
        """
        notes: Mapping[str, str] = vpa["metadata"].get("annotations") or {}
        named = {name: notes[ANNOTATIONS + name] for name in ("workload", "run") if notes.get(ANNOTATIONS + name)}
        subject = Subject.of(named, f"annotations {ANNOTATIONS}…")
        for name in ("container", "resources"):
            if not notes.get(ANNOTATIONS + name):
                raise SubjectError(f"annotation {ANNOTATIONS}{name} is missing")
        try:
            conversions = tuple(map(Conversion.parse, notes[ANNOTATIONS + "resources"].split(",")))
        except QuantityError as error:
            raise SubjectError(f"annotation {ANNOTATIONS}resources: {error}") from error
        return cls(subject, notes[ANNOTATIONS + "container"], conversions)


def is_addressed(vpa: Object, name: str = RECOMMENDER) -> bool:
    """Whether an object names this recommender."""
    return any(one.get("name") == name for one in vpa["spec"].get("recommenders") or ())


def recommendation(vpa: Object, wanted: RecommendationRequest, decided: Amounts) -> Object:
    """``status.recommendation`` of an object: the decided amounts, within the bounds of its resource policy.

    Lower and upper bound equal the target, because the updater acts on requests outside of them.

    Raises:
        SubjectError: the decision lacks a resource.
    """
    missing = [one.resource for one in wanted.conversions if one.resource not in decided]
    if missing:
        raise SubjectError(
            f"annotation {ANNOTATIONS}resources: must be one of {', '.join(sorted(decided))}, not {missing[0]!r}"
        )
    uncapped = {one.name: one.of(decided[one.resource]) for one in wanted.conversions}
    target = {name: _clamp(text, name, _policy(vpa, wanted.container)) for name, text in uncapped.items()}
    bounds = {"target": target, "lowerBound": target, "upperBound": target, "uncappedTarget": uncapped}
    return {"containerRecommendations": [{"containerName": wanted.container, **bounds}]}


def _policy(vpa: Object, container: str) -> Object:
    """The object's resource policy for a container: its own, else that of all containers, else empty."""
    policies = (vpa["spec"].get("resourcePolicy") or {}).get("containerPolicies") or ()
    by_name = {one.get("containerName", EVERY_CONTAINER): one for one in policies}
    policy: Object = by_name.get(container) or by_name.get(EVERY_CONTAINER) or {}
    return policy


def _clamp(text: str, name: str, policy: Object) -> str:
    amount = parse_quantity(text)
    for bound, nearest in (("minAllowed", max), ("maxAllowed", min)):
        limit = (policy.get(bound) or {}).get(name)
        if limit is not None:
            amount = nearest(amount, parse_quantity(str(limit)))
    return quantity(Decimal(amount))


def conditions(old: Object, now: str, reason: str = "", message: str = "") -> list[Object]:
    """All conditions of a status, with ``RecommendationProvided``: true without a ``reason``, else false with
    ``message``.

    ``now`` (RFC 3339) becomes its transition time if it has changed.
    """
    before = list(old.get("conditions") or ())
    status = "False" if reason else "True"
    same = [one for one in before if one.get("type") == PROVIDED and one.get("status") == status]
    since = same[0]["lastTransitionTime"] if same else now
    fields = {"reason": reason, "message": message} if reason else {}
    provided = {"type": PROVIDED, "status": status, "lastTransitionTime": since, **fields}
    return [*(one for one in before if one.get("type") != PROVIDED), provided]
