"""A Kubernetes pod, whose CPU and memory are resized while it runs (``resize``, from Kubernetes 1.33 on).

If the launcher is killed, the pod runs on until the same run is started again (see `leftovers`); ``kubectl delete pod
--selector steward-run`` removes all such pods.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any

from typing_extensions import override

from steward_client.kubernetes import KubernetesApi, KubernetesError, parse_quantity, quantity

from .contract import UNITS, ActuatorError, Allocation, CannotSet, Launch, Range, Settable, Sink, Unavailable
from .leftovers import Leaving, Leftover, launcher
from .remote import FIRST_PAUSE_SECONDS, KILLED, LONGEST_PAUSE_SECONDS, Remote

CONTAINER, LABEL, NAME, LAUNCHER = "steward", "steward-run", "steward-name", "steward-launcher"
IN_PLACE = "resize of the pod, in place"
NO_SUCH = 404
RESIZES, INFEASIBLE = ("PodResizePending", "PodResizeInProgress"), "Infeasible"
Object = Mapping[str, Any]


class KubernetesPod(Remote, Leaving):
    """Runs a command in a pod of its own.

    Args:
        wanted: the resources to be set, as requests and limits: ``cpu`` (percent of a core) and ``memory`` (MiB).
        image: the container's image.
        namespace: namespace of the pod.
        api: address of ``kubectl proxy``; empty: the cluster in which this process's pod runs.
        account: service account of the pod; empty: the namespace's default.

    Raises:
        Unavailable: no image is given, or there is neither an address nor a pod's service account.
        CannotSet: another resource is wanted, or not in that range.
    """

    name = "kubernetes"

    def __init__(
        self,
        wanted: Mapping[str, Range],
        image: str = "",
        namespace: str = "default",
        api: str = "",
        account: str = "",
    ) -> None:
        if not image:
            raise Unavailable("a pod needs an image: --option image=python:3.11")
        settable = {
            "cpu": Settable(UNITS["cpu"], 1.0, None, IN_PLACE),
            "memory": Settable(UNITS["memory"], 4.0, None, IN_PLACE),
        }
        super().__init__(settable, wanted)
        self._api = connect(api)
        self._image, self._account = image, account
        self._pods, self._pod = f"/api/v1/namespaces/{namespace}/pods", ""
        self._stopping = False

    def _begin(self, launch: Launch, allocation: Allocation) -> None:
        run = _slug(launch.name)
        name = f"{run}-{secrets.token_hex(4)}"
        container = {
            "name": CONTAINER,
            "image": self._image,
            "command": list(launch.command),
            "env": [{"name": key, "value": value} for key, value in launch.environment.items()],
            "resources": _resources(allocation),
        }
        spec = {"restartPolicy": "Never", "containers": [container]}
        if self._account:
            spec["serviceAccountName"] = self._account
        metadata = {"name": name, "labels": {LABEL: name, NAME: run, LAUNCHER: launcher()}}
        call_api(self._api.create, self._pods, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        self._pod = f"{self._pods}/{name}"

    def _set(self, allocation: Allocation) -> str:
        self._resize(allocation)
        return self._waits_as_requested(allocation)

    def _waits(self, allocation: Allocation) -> str:
        """Why the kubelet hasn't resized the pod yet, by the pod's status; it is undone if the node is too small.

        Raises:
            CannotSet: the node is too small, and the pod asks for its former resources again.
        """
        status = call_api(self._api.get, self._pod).get("status") or {}
        for one in status.get("conditions") or ():
            if one.get("type") not in RESIZES or one.get("status") == "False":
                continue
            reason, message = str(one.get("reason") or one["type"]), str(one.get("message") or "")
            if reason == INFEASIBLE:
                try:
                    self._withdraw(allocation)
                except ActuatorError as error:  # the pod asks for it on, and gets it once its node has room
                    return f"{reason}: {message}; it can't be taken back: {error}"
                name, why = next(iter(allocation)), message or reason
                raise CannotSet(name, allocation[name], f"the node has no room for it now: {why}", reason)
            return f"{reason}: {message}" if message else reason
        # One that the kubelet hasn't looked at yet has no condition, but the former resources
        states = [one.get("resources") or {} for one in status.get("containerStatuses") or ()]
        limits = states[0].get("limits", {}) if states else {}
        wanted = _resources(allocation)["limits"]
        same = all(
            parse_quantity(limits[name]) == parse_quantity(wanted[name]) for name in limits.keys() & wanted.keys()
        )
        return "" if same else "PodResizePending"

    def _withdraw(self, allocation: Allocation) -> None:
        self._resize({name: self._current[name] for name in allocation})

    def _resize(self, allocation: Allocation) -> None:
        body = {"spec": {"containers": [{"name": CONTAINER, "resources": _resources(allocation)}]}}
        try:
            self._api.patch(f"{self._pod}/resize", body, "strategic-merge")
        except KubernetesError as error:
            if error.refuses_object:
                name = next(iter(allocation))
                raise CannotSet(name, allocation[name], f"Kubernetes refused it: {error}") from error
            older = "; pods are resized in place from Kubernetes 1.33 on" if error.status == NO_SUCH else ""
            raise ActuatorError(f"{error}{older}") from error

    def _look(self) -> int | None:
        try:
            status = self._api.get(self._pod).get("status") or {}
        except KubernetesError as error:
            if error.status != NO_SUCH:
                raise ActuatorError(str(error)) from error
            return 128 + self._ending if self._stopping else KILLED  # it was deleted from outside
        if status.get("phase") not in ("Succeeded", "Failed"):
            return None
        ended = [one["state"].get("terminated") for one in status.get("containerStatuses") or ()]
        return int(ended[0]["exitCode"]) if ended and ended[0] else KILLED  # evicted: it has no status

    def _signal(self, number: int, seconds: float) -> None:  # noqa: ARG002
        """Delete the pod with a grace period of ``seconds``; Kubernetes chooses the signal, usually SIGTERM."""
        self._stopping = True
        self._delete(round(seconds))

    def _kill(self) -> None:
        self._delete(0)

    def _remove(self) -> None:
        self._delete(0)

    @override
    def leftovers(self, name: str) -> Iterable[Leftover]:
        pods = call_api(lambda: list(self._api.list(self._pods, labelSelector=f"{NAME}={_slug(name)}")))
        return [Leftover(one["metadata"]["name"], one["metadata"]["labels"].get(LAUNCHER, "")) for one in pods]

    @override
    def discard(self, one: Leftover) -> None:
        self._delete(0, f"{self._pods}/{one.id}")

    @override
    def close(self) -> None:
        super().close()
        self._api.close()

    def _delete(self, seconds: int, pod: str = "") -> None:
        try:
            self._api.delete(pod or self._pod, {"gracePeriodSeconds": seconds})
        except KubernetesError as error:
            if error.status != NO_SUCH:
                raise ActuatorError(str(error)) from error

    def _follow(self, sink: Sink) -> None:
        """Wait for the container's start, and pass its log to ``sink`` as standard output (both streams)."""
        length, pause = 0, FIRST_PAUSE_SECONDS
        while True:
            ended = self._status is not None or self._closed
            try:
                for piece in self._api.stream(f"{self._pod}/log?container={CONTAINER}&follow=true"):
                    sink("stdout", piece)
                    length += len(piece)
            except KubernetesError:
                ended = ended or length > 0
            else:
                return
            if ended:
                return
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:50].rstrip("-") or "run"


def connect(api: str) -> KubernetesApi:
    """Client of the cluster's API; ``api``: address of ``kubectl proxy``, empty: the cluster of this process's pod.

    Raises:
        Unavailable: there is neither an address nor a pod's service account.
    """
    try:
        return KubernetesApi.connect(api or None)
    except KubernetesError as error:
        raise Unavailable(f"{error}: --option api=http://127.0.0.1:8001") from error


def call_api(call: Any, *arguments: Any) -> Any:
    """Call a function of the Kubernetes client and return its result; raises ActuatorError for a KubernetesError."""
    try:
        return call(*arguments)
    except KubernetesError as error:
        raise ActuatorError(str(error)) from error


def _resources(allocation: Allocation) -> Object:
    amounts = {}
    if "cpu" in allocation:
        amounts["cpu"] = quantity(allocation["cpu"] / 100)
    if "memory" in allocation:
        amounts["memory"] = f"{round(allocation['memory'])}Mi"
    return {"requests": amounts, "limits": amounts}
