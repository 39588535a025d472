"""A double of Kubernetes' API: objects, patches and subresources as far as Steward's clients use them, in this process.

It is no Kubernetes: what it keeps to is written from the API's reference. Status and spec are changed apart, a pod's
resources only through ``resize``, and what Kubernetes would refuse is refused with its kinds of answers.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from steward_client.kubernetes import KubernetesApi, QuantityError, parse_quantity

Json = dict[str, Any]
_PATH = re.compile(
    r"(?P<group>/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/(?P<space>[^/]+))?/(?P<plural>[a-z]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<sub>status|scale|resize))?)?"
)
SCALED = {"deployments", "statefulsets", "replicasets"}
ACCEPTED = {"merge", "strategic-merge", "json"}


class Refused(Exception):
    """Kubernetes would refuse it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.answer = httpx.Response(
            status, json={"kind": "Status", "reason": reason, "message": message, "code": status, "status": "Failure"}
        )


@dataclass
class KubernetesDouble:
    """Objects by path; ``calls`` are those that changed something, ``plan`` errors that come first."""

    objects: dict[str, Json] = field(default_factory=dict)
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    plan: list[int] = field(default_factory=list)
    page: int = 2
    admit: Callable[[Json], Json] | None = None

    def api(self) -> KubernetesApi:
        """A client of it."""
        return KubernetesApi(httpx.Client(base_url="http://kubernetes", transport=httpx.MockTransport(self)))

    def add(self, group: str, plural: str, obj: Json) -> str:
        """Put an object there; its path."""
        path = f"{group}/namespaces/{obj['metadata'].setdefault('namespace', 'default')}/{plural}"
        obj["metadata"].setdefault("resourceVersion", "1")
        self.objects[f"{path}/{obj['metadata']['name']}"] = self.admit(obj) if self.admit else obj
        return f"{path}/{obj['metadata']['name']}"

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.plan:
            return Refused(self.plan.pop(0), "Planned", "as planned").answer
        found = _PATH.fullmatch(request.url.path)
        if found is None:
            return Refused(404, "NotFound", "the server could not find the requested resource").answer
        try:
            told = self._listed(request, found) if found["name"] is None else self._one(request, found)
            return httpx.Response(200, json=told)
        except Refused as refused:
            return refused.answer

    def _listed(self, request: httpx.Request, found: re.Match[str]) -> Json:
        space = found["space"] or "[^/]+"
        own = re.compile(f"{re.escape(found['group'])}/namespaces/{space}/{found['plural']}/[^/]+")
        items = [obj for path, obj in sorted(self.objects.items()) if own.fullmatch(path)]
        wanted = dict(pair.split("=") for pair in request.url.params.get("labelSelector", "").split(",") if pair)
        items = [one for one in items if wanted.items() <= one["metadata"].get("labels", {}).items()]
        first = int(request.url.params.get("continue") or 0)
        after = first + min(self.page, int(request.url.params.get("limit") or self.page))
        following = str(after) if after < len(items) else ""
        return {"kind": "List", "metadata": {"continue": following}, "items": items[first:after]}

    def _one(self, request: httpx.Request, found: re.Match[str]) -> Json:
        path = request.url.path.removesuffix(f"/{found['sub']}") if found["sub"] else request.url.path
        if path not in self.objects:
            raise Refused(404, "NotFound", f'{found["plural"]} "{found["name"]}" not found')
        if found["sub"] == "scale" and found["plural"] not in SCALED:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        if request.method == "GET":
            return _scale(self.objects[path]) if found["sub"] == "scale" else self.objects[path]
        if request.method != "PATCH":
            raise Refused(405, "MethodNotAllowed", f"{request.method} is not supported here")
        body = json.loads(request.content)
        self.calls.append((request.url.path, request.headers["content-type"], body))
        self.objects[path] = self._patched(path, found, body, request.headers["content-type"])
        return _scale(self.objects[path]) if found["sub"] == "scale" else self.objects[path]

    def _patched(self, path: str, found: re.Match[str], body: Any, media_type: str) -> Json:
        old, kind = self.objects[path], media_type.removeprefix("application/").removesuffix("-patch+json")
        if kind not in ACCEPTED or (kind == "strategic-merge" and "." in found["group"].split("/")[2]):
            raise Refused(415, "UnsupportedMediaType", f"{media_type} is not supported for {found['plural']}")
        if found["sub"] == "scale":
            replicas = body["spec"]["replicas"]
            if not isinstance(replicas, int) or replicas < 0:
                raise Refused(422, "Invalid", f"spec.replicas: Invalid value: {replicas}: must be at least 0")
            body, kind = {"spec": {"replicas": replicas}}, "merge"
        new = merged(old, body, lists=kind == "strategic-merge")
        new = _apart(old, new, found["sub"] == "status")
        _checked(old, new, found["plural"], found["sub"])
        new["metadata"]["resourceVersion"] = str(int(old["metadata"]["resourceVersion"]) + 1)
        return new


def merged(old: Any, patch: Any, *, lists: bool = False) -> Any:
    """A merge patch (RFC 7396); with ``lists``, those of named things are merged by name, as strategic patches do."""
    if isinstance(patch, Mapping):
        new: Json = dict(copy.deepcopy(old)) if isinstance(old, Mapping) else {}
        for name, value in patch.items():
            if value is None:
                new.pop(name, None)
            else:
                new[name] = merged(new.get(name), value, lists=lists)
        return new
    if lists and isinstance(patch, list) and isinstance(old, list) and all("name" in one for one in patch):
        by_name = {one["name"]: one for one in old}
        by_name |= {one["name"]: merged(by_name.get(one["name"]), one, lists=True) for one in patch}
        return list(by_name.values())
    return copy.deepcopy(patch)


def _apart(old: Json, new: Json, status: bool) -> Json:
    """What is changed through ``status`` is the status alone, and it is changed nowhere else."""
    kept, taken = (old, new) if status else (new, old)
    return (
        {**kept, "status": taken["status"]} if "status" in taken else {k: v for k, v in kept.items() if k != "status"}
    )


def _checked(old: Json, new: Json, plural: str, sub: str | None) -> None:
    if plural == "pods":
        if sub != "resize" and new["spec"] != old["spec"]:
            raise Refused(422, "Invalid", "spec: Forbidden: pod updates may not change fields other than ...")
        for container in new["spec"]["containers"] if sub == "resize" else ():
            _resizable(container)
    if plural == "jobs" and new["spec"].get("template") != old["spec"].get("template"):
        raise Refused(422, "Invalid", "spec.template: field is immutable")


def _resizable(container: Json) -> None:
    asked, limits = (container.get("resources", {}).get(name, {}) for name in ("requests", "limits"))
    beyond = sorted({*asked, *limits} - {"cpu", "memory"})
    if beyond:
        raise Refused(422, "Invalid", f"resources: Forbidden: only cpu and memory are resizable, not {beyond[0]}")
    try:
        too_much = [
            name for name, limit in limits.items() if parse_quantity(asked.get(name, "0")) > parse_quantity(limit)
        ]
    except QuantityError as error:
        raise Refused(400, "BadRequest", f"quantities must match the regular expression: {error}") from error
    if too_much:
        raise Refused(422, "Invalid", f"resources.requests: must be less than or equal to {too_much[0]} limit")


def _scale(obj: Json) -> Json:
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": obj["metadata"],
        "spec": {"replicas": obj["spec"].get("replicas", 1)},
    }
