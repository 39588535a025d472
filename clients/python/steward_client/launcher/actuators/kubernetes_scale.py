"""Replicas of a Kubernetes Deployment, StatefulSet or Job, or members of a custom resource, driven by a local command.

Replicas of a Deployment, StatefulSet or ReplicaSet wait until as many pods are ready. A Job, whose pods end, and other
resources don't say how many of them are: what the API server has accepted counts as there.

The object belongs to others: it keeps its last size when the command ends, and when the launcher is killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from steward_client.kubernetes import Conversion, KubernetesError, QuantityError

from .contract import ActuatorError, Allocation, CannotSet, Range, Settable, Unavailable
from .driven import Driven
from .kubernetes import call_api, connect

APPS, FORBIDDEN = "/apis/apps/v1", 403
SCALED = {"deployment": "deployments", "statefulset": "statefulsets", "replicaset": "replicasets"}
WHAT = "--option target=deployment/NAME, statefulset/NAME, job/NAME or a path /apis/GROUP/VERSION/namespaces/…/NAME"


class KubernetesScale(Driven):
    """Runs a command on this machine and scales an object of Kubernetes.

    Args:
        wanted: the resources to be set: one without ``fields``, else those that ``fields`` names.
        target: ``deployment/NAME`` or ``statefulset/NAME`` (by subresource ``scale``), ``job/NAME`` (by its
            parallelism), or the API path of an object.
        namespace: namespace of the object; unused with a path.
        fields: for a path, the member for each resource, separated by commas: ``gpus=spec.worker.gpus``; with a unit
            (``memory=spec.memory*1Mi``) a quantity is written.
        api: address of ``kubectl proxy``; empty: the cluster in which this process's pod runs.

    Raises:
        Unavailable: there is no target, no such object, or no access to the cluster.
        ActuatorError: ``target`` or ``fields`` is malformed.
        CannotSet: a wanted resource has no field.
    """

    name = "kubernetes-scale"

    def __init__(
        self,
        wanted: Mapping[str, Range],
        target: str = "",
        namespace: str = "default",
        fields: str = "",
        api: str = "",
    ) -> None:
        self._path, self._fields = _target(target, namespace, fields, next(iter(wanted), "workers"))
        settable = {name: Settable("", 0.0, None, f"patch of {target}") for name in self._fields}
        super().__init__(settable, wanted)
        own = self._path.startswith(APPS) and self._path.endswith("/scale")
        self._object, self._ready = self._path.removesuffix("/scale") if own else "", 0
        self._whole = {name for name, field in self._fields.items() if field.unit is None}
        self._api = connect(api)
        try:
            call_api(self._api.get, self._path)
        except ActuatorError as error:
            raise Unavailable(str(error)) from error

    def _round(self, name: str, value: float) -> float:
        return float(round(value)) if name in self._whole else value

    def _set(self, allocation: Allocation) -> str:
        self._scale(allocation)
        return self._waits_as_requested(allocation)

    def _waits(self, allocation: Allocation) -> str:
        """Why fewer replicas are ready than requested, by the object's status; empty: all are, or that isn't known."""
        if not self._object:
            return ""
        try:
            status = self._api.get(self._object).get("status") or {}
        except KubernetesError as error:
            if error.status != FORBIDDEN:
                raise ActuatorError(str(error)) from error
            self._news.append(f"whether replicas wait isn't seen: {error}")
            self._object = ""
            return ""
        request, self._ready = round(next(iter(allocation.values()))), int(status.get("readyReplicas") or 0)
        if self._ready >= request:
            return ""
        for one in status.get("conditions") or ():
            if one.get("type") == "ReplicaFailure" and one.get("status") == "True":
                return f"{one.get('reason') or one['type']}: {one.get('message') or 'pods cannot be made'}"
        return f"NotReady: {self._ready} of {request} replicas are ready"

    def _there(self, allocation: Allocation) -> Allocation:  # noqa: ARG002 # as of the last look
        return dict.fromkeys(self._settable, float(self._ready))

    def _withdraw(self, allocation: Allocation) -> None:
        self._scale({name: self._former[name] for name in allocation})

    def _scale(self, allocation: Allocation) -> None:
        body: dict[str, Any] = {}
        for name, value in allocation.items():
            self._fields[name].put(body, value)
        try:
            self._api.patch(self._path, body)
        except KubernetesError as error:
            if error.refuses_object:
                name = next(iter(allocation))
                raise CannotSet(name, allocation[name], f"Kubernetes refused it: {error}") from error
            raise ActuatorError(str(error)) from error

    @override
    def close(self) -> None:
        super().close()
        self._api.close()


class Field:
    """A member of an object by its dotted path; its value is an integer, or with ``unit`` a Kubernetes quantity."""

    def __init__(self, path: str, unit: Conversion | None = None) -> None:
        self.path, self.unit = path.split("."), unit

    def put(self, body: dict[str, Any], value: float) -> None:
        """Add ``value`` under the field's path to a merge patch; changes ``body``."""
        *folders, last = self.path
        for folder in folders:
            body = body.setdefault(folder, {})
        body[last] = round(value) if self.unit is None else self.unit.of(value)


def _target(target: str, namespace: str, fields: str, first: str) -> tuple[str, Mapping[str, Field]]:
    """API path to which patches are sent, and the field of each resource.

    Raises:
        Unavailable: ``target`` is empty.
        ActuatorError: ``target`` or ``fields`` is malformed.
    """
    if not target:
        raise Unavailable(f"something to scale is needed: {WHAT}")
    if target.startswith("/"):
        return target, _fields(fields)
    kind, _, name = target.partition("/")
    if fields or not name or kind not in {*SCALED, "job"}:
        raise ActuatorError(f"target={target}, fields={fields}: accepted are {WHAT}, fields for a path only")
    if kind == "job":
        return f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}", {first: Field("spec.parallelism")}
    return f"{APPS}/namespaces/{namespace}/{SCALED[kind]}/{name}/scale", {first: Field("spec.replicas")}


def _fields(text: str) -> Mapping[str, Field]:
    if not text:
        raise ActuatorError("a path needs fields: --option fields=workers=spec.replicas,memory=spec.memory*1Mi")
    try:
        conversions = [Conversion.parse(one) for one in text.split(",")]
    except QuantityError as error:
        raise ActuatorError(f"fields={text}: {error}") from error
    return {
        one.name: Field(one.resource, one if "*" in part else None)
        for one, part in zip(conversions, text.split(","), strict=True)
    }
