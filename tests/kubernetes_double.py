"""A double of Kubernetes' API: objects, patches and subresources as far as Steward's clients use them, in this process.

It is no Kubernetes: what it keeps to is written from the API's reference. Each object that is made or changed must be
valid by the schemas of all releases in `kubernetes_schemas`, and so are its answers. Status and spec are changed apart,
a pod's resources only through ``resize``, and what Kubernetes would refuse is refused with its kinds of answers.
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

from tests.kubernetes_schemas import InvalidObject, check, immutable

Json = dict[str, Any]
_PATH = re.compile(
    r"(?P<group>/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/(?P<space>[^/]+))?/(?P<plural>[a-z]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<sub>status|scale|resize))?)?"
)
SCALED = {"deployments", "statefulsets", "replicasets"}
ACCEPTED = {"merge", "strategic-merge", "json"}


class Refused(Exception):
    """Kubernetes would refuse it, with a `Status`; ``seconds``: its header Retry-After."""

    def __init__(self, status: int, reason: str, message: str, seconds: str = "", **metadata: str) -> None:
        super().__init__(message)
        fields: Json = {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure"}
        fields |= {"reason": reason, "message": message, "code": status}
        check(fields)
        self.answer = httpx.Response(status, json=fields, headers={"Retry-After": seconds} if seconds else {})


FORBIDDEN = (
    'pods "train" is forbidden: User "system:serviceaccount:default:steward" cannot patch resource "pods/resize" '
    'in API group "" in the namespace "default"'
)
CONFLICT = (
    'Operation cannot be fulfilled on deployments.apps "trainer": the object has been modified; '
    "please apply your changes to the latest version and try again"
)
ANSWERS = {
    403: ("Forbidden", FORBIDDEN),
    409: ("Conflict", CONFLICT),
    410: ("Expired", "The provided continue parameter is too old to display a consistent list result."),
    429: ("TooManyRequests", "too many requests, please try again later", "1"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "request did not complete within the requested timeout", "7"),
}
"""Answers of an API server by status: reason, message and Retry-After, as its code writes them."""
QUOTA = Refused(
    403,
    "Forbidden",
    'pods "train" is forbidden: exceeded quota: compute, requested: limits.cpu=2, used: limits.cpu=7, '
    "limited: limits.cpu=8",
)
WEBHOOK = Refused(400, "BadRequest", 'admission webhook "size.example.org" denied the request: at most 1 core')
POLICY = Refused(
    422,
    "Invalid",
    "pods \"train\" is forbidden: ValidatingAdmissionPolicy 'size' with binding 'size' denied request: at most 1 core",
)
"""Refusals by admission: by a quota, by a webhook without a status of its own, by a policy."""


@dataclass
class KubernetesDouble:
    """Objects by path.

    ``calls`` are those that changed something; ``plan`` are answers that come first, by their status or as they are;
    with ``expires`` a list can't be continued in one view. ``pauses`` are the seconds that its clients have waited.
    """

    objects: dict[str, Json] = field(default_factory=dict)
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    plan: list[int | Refused] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    page: int = 2
    expires: bool = False
    admit: Callable[[Json], Json] | None = None

    def api(self) -> KubernetesApi:
        """A client of it."""
        http = httpx.Client(base_url="http://kubernetes", transport=httpx.MockTransport(self))
        return KubernetesApi(http, self.pauses.append)

    def add(self, group: str, plural: str, obj: Json) -> str:
        """Put an object there; its path.

        Raises:
            InvalidObject: it isn't valid, as it is given or as admission has left it.
            Refused: there is one of this name.
        """
        check(obj)
        folder = f"{group}/namespaces/{obj['metadata'].setdefault('namespace', 'default')}/{plural}"
        path = f"{folder}/{obj['metadata']['name']}"
        if path in self.objects:
            raise Refused(409, "AlreadyExists", f'{plural} "{obj["metadata"]["name"]}" already exists')
        obj["metadata"].setdefault("resourceVersion", "1")
        self.objects[path] = self.admit(obj) if self.admit else obj
        check(self.objects[path])
        return path

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.plan:
            planned = self.plan.pop(0)
            return (Refused(planned, *ANSWERS[planned]) if isinstance(planned, int) else planned).answer
        match = _PATH.fullmatch(request.url.path)
        if match is None:
            return Refused(404, "NotFound", "the server could not find the requested resource").answer
        try:
            result = self._listed(request, match) if match["name"] is None else self._one(request, match)
            return httpx.Response(200, json=result)
        except Refused as refused:
            return refused.answer

    def _listed(self, request: httpx.Request, match: re.Match[str]) -> Json:
        space = match["space"] or "[^/]+"
        own = re.compile(f"{re.escape(match['group'])}/namespaces/{space}/{match['plural']}/[^/]+")
        items = [obj for path, obj in sorted(self.objects.items()) if own.fullmatch(path)]
        wanted = dict(pair.split("=") for pair in request.url.params.get("labelSelector", "").split(",") if pair)
        items = [one for one in items if wanted.items() <= one["metadata"].get("labels", {}).items()]
        token = request.url.params.get("continue") or "0"
        if self.expires and token.isdecimal() and token != "0":
            raise Refused(410, *ANSWERS[410], **{"continue": f"{token} of a later view"})
        first = int(token.partition(" ")[0])
        after = first + min(self.page, int(request.url.params.get("limit") or self.page))
        following = str(after) if after < len(items) else ""
        first_of = items[0] if items else {"kind": "", "apiVersion": "v1"}
        kind = {"kind": f"{first_of['kind']}List", "apiVersion": first_of["apiVersion"]}
        return {**kind, "metadata": {"continue": following}, "items": items[first:after]}

    def _one(self, request: httpx.Request, match: re.Match[str]) -> Json:
        path = request.url.path.removesuffix(f"/{match['sub']}") if match["sub"] else request.url.path
        if path not in self.objects:
            raise Refused(404, "NotFound", f'{match["plural"]} "{match["name"]}" not found')
        if match["sub"] == "scale" and match["plural"] not in SCALED:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        if request.method == "GET":
            return _scale(self.objects[path]) if match["sub"] == "scale" else self.objects[path]
        if request.method != "PATCH":
            raise Refused(405, "MethodNotAllowed", f"{request.method} is not supported here")
        body = json.loads(request.content)
        self.calls.append((request.url.path, request.headers["content-type"], body))
        self.objects[path] = self._patched(path, match, body, request.headers["content-type"])
        return _scale(self.objects[path]) if match["sub"] == "scale" else self.objects[path]

    def _patched(self, path: str, match: re.Match[str], body: Any, media_type: str) -> Json:
        old, kind = self.objects[path], media_type.removeprefix("application/").removesuffix("-patch+json")
        if kind not in ACCEPTED or (kind == "strategic-merge" and "." in match["group"].split("/")[2]):
            raise Refused(415, "UnsupportedMediaType", f"{media_type} is not supported for {match['plural']}")
        if match["sub"] == "scale":
            replicas = body["spec"]["replicas"]
            if not isinstance(replicas, int) or replicas < 0:
                raise Refused(422, "Invalid", f"spec.replicas: Invalid value: {replicas}: must be at least 0")
            body, kind = {"spec": {"replicas": replicas}}, "merge"
        new = json_patched(old, body) if kind == "json" else merged(old, body, lists=kind == "strategic-merge")
        new = _apart(old, new, match["sub"] == "status")
        _checked(old, new, match["plural"], match["sub"])
        new["metadata"]["resourceVersion"] = str(int(old["metadata"]["resourceVersion"]) + 1)
        try:
            check(new)
        except InvalidObject as error:
            raise Refused(422, "Invalid", str(error)) from error
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


def json_patched(old: Any, operations: list[Json]) -> Any:
    """A JSON patch (RFC 6902) of the operations add, replace and remove."""
    new = copy.deepcopy(old)
    for operation in operations:
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        at: Any = new
        for part in path:
            at = at[int(part)] if isinstance(at, list) else at[part]
        if operation["op"] == "remove":
            del at[int(last) if isinstance(at, list) else last]
        elif isinstance(at, list) and operation["op"] == "add":
            at.insert(len(at) if last == "-" else int(last), operation["value"])
        else:
            at[int(last) if isinstance(at, list) else last] = operation["value"]
    return new


def _apart(old: Json, new: Json, status: bool) -> Json:
    """What is changed through ``status`` is the status alone, and it is changed nowhere else."""
    selection, taken = (old, new) if status else (new, old)
    return (
        {**selection, "status": taken["status"]}
        if "status" in taken
        else {k: v for k, v in selection.items() if k != "status"}
    )


def _checked(old: Json, new: Json, plural: str, sub: str | None) -> None:
    if plural == "pods":
        if sub != "resize" and new["spec"] != old["spec"]:
            raise Refused(422, "Invalid", "spec: Forbidden: pod updates may not change fields other than ...")
        for container in new["spec"]["containers"] if sub == "resize" else ():
            _resizable(container)
    fixed = [("spec", "template")] if plural == "jobs" else immutable(old["kind"], old["apiVersion"])
    for path in fixed:
        before, after = old, new
        for part in path:
            before, after = before.get(part) or {}, after.get(part) or {}
        if before != after:
            raise Refused(422, "Invalid", f"{'.'.join(path)}: Invalid value: field is immutable")


def _resizable(container: Json) -> None:
    requested, limits = (container.get("resources", {}).get(name, {}) for name in ("requests", "limits"))
    beyond = sorted({*requested, *limits} - {"cpu", "memory"})
    if beyond:
        raise Refused(422, "Invalid", f"resources: Forbidden: only cpu and memory are resizable, not {beyond[0]}")
    try:
        too_much = [
            name for name, limit in limits.items() if parse_quantity(requested.get(name, "0")) > parse_quantity(limit)
        ]
    except QuantityError as error:
        raise Refused(400, "BadRequest", f"quantities must match the regular expression: {error}") from error
    if too_much:
        raise Refused(422, "Invalid", f"resources.requests: must be less than or equal to {too_much[0]} limit")


def _scale(obj: Json) -> Json:
    replicas = obj["spec"].get("replicas", 1)
    metadata = {name: obj["metadata"][name] for name in ("name", "namespace", "resourceVersion")}
    spec, status = {"replicas": replicas}, {"replicas": obj.get("status", {}).get("replicas", replicas)}
    scale = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}
    check(scale)
    return scale
