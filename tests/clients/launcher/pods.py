"""A double of Kubernetes that runs pods: their commands are processes of this machine."""

from __future__ import annotations

import copy
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

PODS = "/api/v1/namespaces/default/pods"
ROOM = Decimal(4)
"""Cores of the node; one that other pods have (``taken``) may come back, those beyond never do."""


@dataclass
class Pods(KubernetesDouble):
    """As the double, and what is made under pods is run."""

    folder: Path = Path()
    programs: dict[str, Program] = field(default_factory=dict)
    taken: Decimal = Decimal(0)
    slow: bool = False  # whether the kubelet has not looked at a resize yet

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        try:
            if request.method == "POST" and path == PODS:
                return httpx.Response(201, json=self._run(json.loads(request.content)))
            if request.method == "DELETE":
                return self._ended(path, json.loads(request.content)["gracePeriodSeconds"])
            if path.endswith("/log"):
                return httpx.Response(200, content=_written(self.programs[path.removesuffix("/log")]))
        except Refused as refused:
            return refused.answer
        self._look(path.removesuffix("/resize"))
        return super().__call__(request)

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
        asked = parse_quantity(pod["spec"]["containers"][0]["resources"]["requests"].get("cpu", "0"))
        told = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "node has 4 cores"}
        if asked <= ROOM:
            told |= {"reason": "Deferred", "message": "Node didn't have enough resource: cpu"}
        state = {"running": {}} if status is None else {"terminated": {"exitCode": status}}
        phase = "Running" if status is None else "Failed" if status else "Succeeded"
        before = pod.get("status", {}).get("containerStatuses", [{}])[0].get("resources")
        conditions = [told] if asked > ROOM - self.taken and not self.slow else []
        wanted = pod["spec"]["containers"][0]["resources"]
        given = before if before and (conditions or self.slow) else copy.deepcopy(wanted)
        own = {"state": state, "resources": given}
        pod["status"] = {"phase": phase, "containerStatuses": [own], "conditions": conditions}

    def _ended(self, path: str, grace: int) -> httpx.Response:
        self._look(path)
        if path not in self.objects:
            raise Refused(404, "NotFound", "pods not found")
        self.objects[path]["metadata"]["deletionTimestamp"] = "now"
        if grace:
            self.programs[path].send(signal.SIGTERM)
        else:
            self.programs[path].end()
        pod = self.objects[path]
        self._look(path)
        return httpx.Response(200, json=pod)


def _written(program: Program) -> Iterator[bytes]:
    return (piece for _, piece in program.follow())
