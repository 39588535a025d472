"""Recommender: keeps recommendations of ``VerticalPodAutoscaler`` objects equal to the latest decisions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime

from steward_client.errors import StewardError, Unreachable
from steward_client.kubernetes import KubernetesApi, KubernetesError, QuantityError

from .amounts import Amounts, Subject, SubjectError
from .vpa import RECOMMENDER, Object, RecommendationRequest, conditions, is_addressed, recommendation

GROUP = "/apis/autoscaling.k8s.io/v1"
PLURAL = "verticalpodautoscalers"
KEY_REFUSED = (401, 403)
"""Statuses of the service that no object is the cause of: they are logged, too."""

logger = logging.getLogger("steward_client")


def _now() -> datetime:
    return datetime.now(UTC)


class Recommender:
    """Writes recommendations to all objects that name it.

    Args:
        api: client of the cluster.
        decided: returns a subject's latest amounts.
        namespace: the only namespace; None: all.
        name: the recommender's name in ``spec.recommenders``.
        now: the present time.
    """

    def __init__(
        self,
        api: KubernetesApi,
        decided: Callable[[Subject], Amounts],
        namespace: str | None = None,
        name: str = RECOMMENDER,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._api, self._decided, self._name, self._now = api, decided, name, now
        self._path = f"{GROUP}/namespaces/{namespace}/{PLURAL}" if namespace else f"{GROUP}/{PLURAL}"

    def look(self) -> int:
        """Update all objects once, and return the number of changed ones; an object's error is written to its status.

        Raises:
            KubernetesError: objects can't be listed.
        """
        return sum(self._update_status(vpa) for vpa in self._api.list(self._path) if is_addressed(vpa, self._name))

    def _update_status(self, vpa: Object) -> bool:
        old: Object = vpa.get("status") or {}
        status = self._status(vpa, old)
        if status is None or status == {name: old.get(name) for name in status}:
            return False
        space, name = vpa["metadata"]["namespace"], vpa["metadata"]["name"]
        try:
            self._api.patch(f"{GROUP}/namespaces/{space}/{PLURAL}/{name}/status", {"status": status})
        except KubernetesError as error:
            logger.warning("%s/%s: %s", space, name, error)
            return False
        return True

    def _status(self, vpa: Object, old: Object) -> Object | None:
        """The status to be written, for an error or without a live run conditions only; None: service unreachable."""
        now = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        try:
            wanted = RecommendationRequest.of(vpa)
            decided = self._decided(wanted.subject)
            if not decided:
                return {"conditions": conditions(old, now, "NothingLive", "no run is live; the last one stands")}
            result = recommendation(vpa, wanted, decided)
        except (SubjectError, QuantityError, StewardError) as error:
            if isinstance(error, StewardError) and error.status in KEY_REFUSED:
                logger.warning("%s/%s: %s", vpa["metadata"]["namespace"], vpa["metadata"]["name"], error)
            return {"conditions": conditions(old, now, "ConfigUnsupported", str(error))}
        except Unreachable as error:
            logger.warning("%s/%s: %s", vpa["metadata"]["namespace"], vpa["metadata"]["name"], error)
            return None
        return {"recommendation": result, "conditions": conditions(old, now)}
