"""A double of Kubernetes that runs pods: their commands are processes of this machine."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import httpx
from steward_client.kubernetes import parse_quantity

from tests.clients.launcher.program import Program
from tests.kubernetes_double import Json, KubernetesDouble, Refused
from tests.kubernetes_schemas import check

PODS = "/api/v1/namespaces/default/pods"


@dataclass
class Pods(KubernetesDouble):
    """As the double, and what is made under pods is run.

    ``room`` are the node's cores, of which others have ``used``; ``syncs`` are looks at a pod until the kubelet has
    judged a resize; ``ready`` is the number of replicas for which there is room, and ``failure`` a quota's refusal of
    others.
    """

    folder: Path = Path()
    programs: dict[str, Program] = field(default_factory=dict)
    room: Decimal = Decimal(4)
    used: Decimal = Decimal(0)
    syncs: int = 0
    ready: int = 100
    failure: str = ""
    _judged: dict[str, tuple[Json, int]] = field(default_factory=dict)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        try:
            if request.method == "POST" and path == PODS and not self.plan:
                return httpx.Response(201, json=self._run(json.loads(request.content)))
            if request.method == "DELETE":
                options = json.loads(request.content)
                check({"apiVersion": "v1", "kind": "DeleteOptions", **options})
                return self._ended(path, options["gracePeriodSeconds"])
            if path.endswith("/log"):
                return httpx.Response(200, content=_written(self.programs[path.removesuffix("/log")]))
        except Refused as refused:
            return refused.answer
        self._look(path.removesuffix("/resize"))
        self._count(path)
        return super().__call__(request)

    def _count(self, path: str) -> None:
        """The controller of a Deployment: how many of its replicas are ready."""
        result = self.objects.get(path)
        if result is None or result["kind"] != "Deployment":
            return
        replicas = result["spec"]["replicas"]
        result["status"] = {"replicas": replicas, "readyReplicas": min(replicas, self.ready)}
        if self.failure and replicas > self.ready:
            failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": self.failure}
            result["status"]["conditions"] = [failure]
        check(result)

    def _run(self, pod: Json) -> Json:
        (container,) = pod["spec"]["containers"]
        path = self.add("/api/v1", "pods", pod)
        environment = {one["name"]: one["value"] for one in container["env"]}
        self.programs[path] = Program(container["command"], environment, self.folder / pod["metadata"]["name"])
        return pod

    def _look(self, path: str) -> None:
        """The kubelet: how the program is, and whether the node has room for what is asked."""
        if path not in self.programs or path not in self.objects:
            return
        pod, status = self.objects[path], self.programs[path].status
        if status is not None and pod["metadata"].get("deletionTimestamp"):
            del self.objects[path]
            return
        wanted = pod["spec"]["containers"][0]["resources"]
        resources, conditions = self._resized(path, wanted)
        state: Json = {"running": {}} if status is None else {"terminated": {"exitCode": status}}
        fields = {"name": "steward", "image": "python:3.11", "imageID": "", "ready": status is None, "restartCount": 0}
        containers = [{**fields, "state": state, "resources": resources}]
        phase = "Running" if status is None else "Failed" if status else "Succeeded"
        pod["status"] = {"phase": phase, "containerStatuses": containers, "conditions": conditions}
        check(pod)

    def _resized(self, path: str, wanted: Json) -> tuple[Json, list[Json]]:
        """Resources that are in force, and conditions: of a resize that the kubelet can't do now, or on this node."""
        in_force, looks = self._judged.setdefault(path, (wanted, 0))
        cores, room = parse_quantity(wanted["requests"].get("cpu", "0")), self.room
        if wanted == in_force or looks < self.syncs:
            self._judged[path] = (in_force, 0 if wanted == in_force else looks + 1)
            return in_force, []
        pending = {"type": "PodResizePending", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        if cores > room:
            lacks = f"Node didn't have enough capacity: cpu, requested: {cores * 1000:.0f}, capacity: {room * 1000}"
            return in_force, [{**pending, "reason": "Infeasible", "message": lacks}]
        if cores > room - self.used:
            lacks = f"Node didn't have enough resource: cpu, requested: {cores * 1000:.0f}, used: {self.used * 1000}"
            return in_force, [{**pending, "reason": "Deferred", "message": lacks}]
        self._judged[path] = (wanted, 0)
        return wanted, []

    def _ended(self, path: str, grace: int) -> httpx.Response:
        self._look(path)
        if path not in self.objects:
            raise Refused(404, "NotFound", "pods not found")
        self.objects[path]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if grace:
            self.programs[path].send(signal.SIGTERM)
        else:
            self.programs[path].end()
        pod = self.objects[path]
        self._look(path)
        return httpx.Response(200, json=pod)


def _written(program: Program) -> Iterator[bytes]:
    return (piece for _, piece in program.follow())
