"""Metadata of a KEDA trigger in a ScaledObject."""

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
    """A resource of a workload or run, and its amount per replica.

    Attributes:
        subject: the run, or the workload with all its live runs.
        resource: name of the resource.
        target_size: amount per replica, in the resource's unit; replicas = decided amount / ``target_size``.
        activation_size: decided amount up to which no replica is needed.
    """

    subject: Subject
    resource: str
    target_size: float = 1.0
    activation_size: float = 0.0

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> Trigger:
        """Parse ``scalerMetadata``; names with suffix ``FromEnv`` are KEDA's variants of the plain ones.

        Raises:
            SubjectError: a member is missing, unknown, or no such number; the message names it.
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
        """Name of the metric: ``steward-SUBJECT-RESOURCE``."""
        return f"steward-{self.subject.workload or self.subject.run}-{self.resource}"

    def amount(self, decided: Amounts) -> float:
        """The decided amount of the resource, in its unit; 0 if no run is live. Raises SubjectError if there are
        decisions, but none on this resource."""
        if decided and self.resource not in decided:
            raise SubjectError(
                f"scalerMetadata.resource: must be one of {', '.join(sorted(decided))}, not {self.resource!r}"
            )
        return decided.get(self.resource, 0.0)


def _size(metadata: Mapping[str, str], name: str, default: float) -> float:
    text = metadata.get(name)
    try:
        size = default if text is None else float(text)
    except ValueError:
        size = math.nan
    if not (0 < size < math.inf or size == default):
        least = "0 or above" if default == 0 else "above 0"
        raise SubjectError(f"scalerMetadata.{name}: {text!r} is not a number {least}")
    return size
