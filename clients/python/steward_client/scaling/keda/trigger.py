"""What a trigger's metadata in a ScaledObject says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from steward_client.scaling.amounts import Amounts, Subject, SubjectError

KNOWN = frozenset({"workload", "run", "resource", "targetSize", "activationSize"})
KEDA_OWN = frozenset(
    {"scalerAddress", "caCert", "tlsCertFile", "tlsClientCert", "tlsClientKey", "unsafeSsl", "enableTLS"}
)


class Trigger(NamedTuple):
    """A resource of a workload or run, and how much of it a replica has.

    Attributes:
        target_size: amount of a replica: there are to be as many replicas as the decided amount has of these.
        activation_size: amount up to which nothing is to run.
    """

    subject: Subject
    resource: str
    target_size: float = 1.0
    activation_size: float = 0.0

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> Trigger:
        """Read ``scalerMetadata``; ``resourceFromEnv`` and the like are KEDA's way to give ``resource``.

        Raises:
            SubjectError: something is missing, unknown or no number above 0; the message names it.
        """
        metadata = {name.removesuffix("FromEnv"): text for name, text in metadata.items()}
        unknown = sorted(set(metadata) - KNOWN - KEDA_OWN)
        if unknown:
            raise SubjectError(f"scalerMetadata.{unknown[0]} is unknown; accepted: {', '.join(sorted(KNOWN))}")
        subject = Subject.of(
            {name: metadata[name] for name in ("workload", "run") if metadata.get(name)}, "scalerMetadata"
        )
        if not metadata.get("resource"):
            raise SubjectError("scalerMetadata.resource is missing: the name of a resource of the workload")
        return cls(
            subject, metadata["resource"], _size(metadata, "targetSize", 1.0), _size(metadata, "activationSize", 0.0)
        )

    @property
    def metric(self) -> str:
        """What the metric is called."""
        return f"steward-{self.subject.workload or self.subject.run}-{self.resource}"

    def amount(self, decided: Amounts) -> float:
        """How much of the resource was decided; 0 where nothing is live.

        Raises:
            SubjectError: there are decisions, but none on this resource.
        """
        if decided and self.resource not in decided:
            raise SubjectError(f"scalerMetadata.resource: {self.resource!r} is none of {', '.join(sorted(decided))}")
        return decided.get(self.resource, 0.0)


def _size(metadata: Mapping[str, str], name: str, default: float) -> float:
    text = metadata.get(name)
    try:
        size = default if text is None else float(text)
    except ValueError:
        size = math.nan
    if not (0 < size < math.inf or size == default):
        raise SubjectError(f"scalerMetadata.{name}: {text!r} is no number above 0")
    return size
