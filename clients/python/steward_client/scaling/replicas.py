"""Replicas of Ray Serve's deployments, set to the latest decisions through its API for outside scalers.

An application allows it by ``external_scaler_enabled: true`` in its configuration, and then has no
``autoscaling_config`` of its own. Ray Serve forgets what was set when the application is deployed anew: each look
compares.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from steward_client.ray_api import RayApi

from .amounts import Amounts, Subject, SubjectError

APPLICATIONS = "/api/serve/applications/"
ALLOWED = "external_scaler_enabled"
ROUNDING = 1e-9
"""Part of a replica that isn't worth one more: 3 amounts of 0.1 each are more than 0.3."""

logger = logging.getLogger("steward_client")


class Target(NamedTuple):
    """A deployment and what its replicas stand for.

    Attributes:
        application, deployment: names in Ray Serve.
        resource: resource of the decision.
        size: amount of it that one replica has.
    """

    application: str
    deployment: str
    resource: str
    size: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Target:
        """Parse ``APPLICATION/DEPLOYMENT=RESOURCE`` or ``…=RESOURCE/SIZE``; raises ValueError with what is accepted."""
        names, _, amount = text.partition("=")
        application, _, deployment = names.partition("/")
        resource, slash, size = amount.partition("/")
        try:
            result = cls(application, deployment, resource, float(size) if slash else 1.0)
        except ValueError:
            result = cls("", "", "")
        if not (result.application and result.deployment and result.resource and 0 < result.size < math.inf):
            raise ValueError(f"{text!r}: APPLICATION/DEPLOYMENT=RESOURCE is accepted, or …=RESOURCE/SIZE above 0")
        return result

    def replicas(self, decided: Amounts) -> int:
        """Number of replicas that have the decided amount; raises SubjectError if none was decided."""
        if self.resource not in decided:
            raise SubjectError(f"resource {self.resource!r} isn't decided; accepted: {', '.join(sorted(decided))}")
        return math.ceil(decided[self.resource] / self.size - ROUNDING)


class ReplicaSetter:
    """Sets the replicas of deployments.

    Args:
        api: client of Ray.
        decided: returns a subject's latest amounts.
        subject: the run or workload whose decisions are set.
        targets: the deployments.
    """

    def __init__(
        self, api: RayApi, decided: Callable[[Subject], Amounts], subject: Subject, targets: Sequence[Target]
    ) -> None:
        self._api, self._decided, self._subject, self._targets = api, decided, subject, targets

    def look(self) -> int:
        """Set what differs from the decisions, and return the number of changed deployments.

        While no run is live, all stay as they are; so they do if an error is raised.

        Raises:
            RayError: Ray doesn't respond.
            SubjectError, StewardError: there is no such subject or resource.
            Unreachable: the service didn't respond, and no decision holds.
        """
        decided = self._decided(self._subject)
        return sum(self._set(one, decided) for one in self._targets) if decided else 0

    def _set(self, target: Target, decided: Amounts) -> bool:
        """Whether a deployment's replicas were changed; what Ray Serve refuses is logged."""
        wanted = target.replicas(decided)
        try:
            if wanted == self._present(target):
                return False
            path = f"/api/v1/applications/{target.application}/deployments/{target.deployment}/scale"
            self._api.call("POST", path, {"target_num_replicas": wanted})
        except RefusedError as error:
            logger.warning("%s/%s: %s", target.application, target.deployment, error)
            return False
        return True

    def _present(self, target: Target) -> int:
        """Number of replicas that Ray Serve wants to have; raises RefusedError if it can't be set."""
        listed: Mapping[str, Any] = self._api.call("GET", APPLICATIONS).json()["applications"]
        application = _named(listed, target.application, "application")
        if not application.get(ALLOWED):
            raise RefusedError(f"set `{ALLOWED}: true` in the application's configuration, which says false")
        deployment = _named(application["deployments"], target.deployment, "deployment")
        return int(deployment["target_num_replicas"])


class RefusedError(RuntimeError):
    """A deployment's replicas can't be set; the message has the remedy."""


def _named(listed: Mapping[str, Any], name: str, what: str) -> Mapping[str, Any]:
    if name not in listed:
        raise RefusedError(f"there is no such {what}; there are: {', '.join(sorted(listed)) or 'none'}")
    results: Mapping[str, Any] = listed[name]
    return results
