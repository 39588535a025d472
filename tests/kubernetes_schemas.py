"""Checks Kubernetes objects by published schemas: those of Kubernetes' releases, and those of custom resources.

The first come with the package ``kubernetes-validate``, in their strict form: an unknown member is refused, which a
server would drop. The second are CustomResourceDefinitions in the folder ``contracts`` of STEWARD_DATA. Beyond the
schemas, names, labels and quantities are checked, since a server refuses those that don't have its form. What only a
server knows is not checked: rules in CEL (but for members that may not change), admission, and rules between members.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

Json = dict[str, Any]
VERSIONS = ("1.31", "1.32", "1.33", "1.34", "1.35", "1.36")
"""The releases that clients and deployment are checked against."""
SCHEMAS = files("kubernetes_validate") / "kubernetes-json-schema"
DEFINITIONS = "_definitions.json"
QUANTITY = r"^[+-]?(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$"
LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"  # RFC 1123
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
KEY = re.compile(rf"({SUBDOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")
ADDED = {"autoscaling.k8s.io", "external.metrics.k8s.io"}  # groups of SIGs that no release has
IMMUTABLE = "self == oldSelf"
NESTED = {"properties", "items", "additionalProperties", "format"}
CUSTOM = {
    "ClusterQueue": "kueue/kueue.x-k8s.io_clusterqueues",
    "JobSet": "jobset/jobset.x-k8s.io_jobsets",
    "LocalQueue": "kueue/kueue.x-k8s.io_localqueues",
    "ScaledObject": "keda/keda.sh_scaledobjects",
    "TrainJob": "trainer/trainer.kubeflow.org_trainjobs",
    "VerticalPodAutoscaler": "vpa/vpa-v1-crd-gen",
    "Workload": "kueue/kueue.x-k8s.io_workloads",
}


class InvalidObject(Exception):
    """An object that a server would refuse; the message names kind, member and schema."""


def check(obj: Mapping[str, Any], versions: Sequence[str] = VERSIONS) -> None:
    """Check an object by the schemas of all ``versions`` of Kubernetes, or by its CustomResourceDefinition.

    A custom resource whose definition isn't there is checked as far as names, labels and quantities go.

    Raises:
        InvalidObject: it isn't valid, or has neither ``apiVersion`` nor ``kind``.
    """
    kind, version = obj.get("kind"), obj.get("apiVersion")
    if not kind or not version:
        raise InvalidObject(f"an object needs apiVersion and kind: {json.dumps(obj)[:200]}")
    if is_custom(version):
        definition = definition_of(kind, version)
        schemas = {version: _custom(kind, version)} if definition else {}
    else:
        schemas = {release: validator(release, kind, version) for release in versions}
    for release, schema in schemas.items():
        error = min(schema.iter_errors(obj), key=lambda one: (len(one.path), one.message), default=None)
        if error is not None:
            where = ".".join(str(part) for part in error.path)
            raise InvalidObject(f"{kind} by the schema of {release}: {where}: {error.message[:400]}")
    if "metadata" in obj and not version.startswith("meta.k8s.io"):
        _check_metadata(kind, obj["metadata"])
    for labels in _pod_labels(obj):
        _check_labels(kind, labels)


def is_custom(version: str) -> bool:
    """Whether an ``apiVersion`` is of a custom resource, and not one of Kubernetes' own groups."""
    group = version.rpartition("/")[0]
    return "." in group and (
        not group.endswith(".k8s.io") or group in {"autoscaling.k8s.io", "kueue.x-k8s.io"} or ".x-k8s.io" in group
    )


@cache
def validator(release: str, kind: str, version: str) -> Draft202012Validator:
    """Validator of a kind of Kubernetes' own by the strict schema of a release such as 1.31.

    Raises:
        InvalidObject: the release doesn't have that kind in that version.
    """
    folder = SCHEMAS / f"v{release}.0-local-strict"
    group, _, of = version.rpartition("/")
    named = f"{kind.lower()}-{group.partition('.')[0] + '-' if group else ''}{of}.json"
    path = folder / named
    if not path.is_file():
        path = folder / f"{kind.lower()}-meta-{of}.json"  # Status and the documents of discovery: apiVersion v1, too
    if not path.is_file():
        raise InvalidObject(f"Kubernetes {release} has no {kind} in {version}")
    schema = json.loads(path.read_text())
    return Draft202012Validator(schema, registry=_registry(release).with_resource(schema["$id"], _resource(schema)))


@cache
def _registry(release: str) -> Registry[Any]:
    definitions = json.loads((SCHEMAS / f"v{release}.0-local-strict" / DEFINITIONS).read_text())
    quantity = {"anyOf": [{"type": "string", "pattern": QUANTITY}, {"type": "number"}]}
    definitions["$defs"]["io.k8s.apimachinery.pkg.api.resource.Quantity"] = quantity
    registry: Registry[Any] = Registry()
    return registry.with_resource(definitions["$id"], _resource(definitions))


def _resource(schema: Json) -> Resource[Any]:
    return Resource.from_contents(schema)


def definition_of(kind: str, version: str) -> Json | None:
    """The structural schema (OpenAPI 3) of a custom resource; None: there is no definition of it here."""
    group, _, of = version.rpartition("/")
    for definition in _definitions(kind):
        if (definition["spec"]["names"]["kind"], definition["spec"]["group"]) == (kind, group):
            for one in definition["spec"]["versions"]:
                if one["name"] == of:
                    schema: Json = one["schema"]["openAPIV3Schema"]
                    return schema
    return None


@cache
def _definitions(kind: str) -> list[Json]:
    folder = os.environ.get("STEWARD_DATA", "")
    path = Path(folder) / "contracts" / f"{CUSTOM.get(kind, kind)}.yaml.gz"
    if not folder or not path.is_file():
        return []
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [one for one in yaml.load_all(gzip.decompress(path.read_bytes()), loader) if one]


@cache
def _custom(kind: str, version: str) -> Draft202012Validator:
    schema = definition_of(kind, version)
    assert schema is not None
    return Draft202012Validator(_strict(schema))


def _strict(schema: Json) -> Json:
    """JSON schema of a structural schema: unknown members are refused where a server would prune them."""
    plain = {
        name: value
        for name, value in schema.items()
        if not name.startswith("x-kubernetes-")
        and name not in {"properties", "items", "additionalProperties", "format"}
    }
    open_ = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource")
    if "properties" in schema:
        plain["properties"] = {name: _strict(one) for name, one in schema["properties"].items()}
        plain["additionalProperties"] = bool(open_)
    if isinstance(schema.get("additionalProperties"), dict):
        plain["additionalProperties"] = _strict(schema["additionalProperties"])
    if "items" in schema:
        plain["items"] = _strict(schema["items"])
    if schema.get("nullable") and "type" in plain:
        plain["type"] = [plain["type"], "null"]
    return plain


def immutable(kind: str, version: str) -> Iterator[tuple[str, ...]]:
    """Paths of a custom resource's members that may not change once they are set, by the rule ``self == oldSelf``."""

    def below(schema: Json, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if any(one.get("rule") == IMMUTABLE for one in schema.get("x-kubernetes-validations", ())):
            yield path
        for name, one in schema.get("properties", {}).items():
            yield from below(one, (*path, name))

    return below(definition_of(kind, version) or {}, ())


def _check_metadata(kind: str, metadata: Mapping[str, Any]) -> None:
    name = metadata.get("name")
    if name is not None and (not re.fullmatch(SUBDOMAIN, name) or len(name) > 253):
        raise InvalidObject(f"{kind}: metadata.name {name!r} must be a lowercase RFC 1123 subdomain")
    _check_labels(kind, metadata.get("labels") or {})
    for key, value in (metadata.get("annotations") or {}).items():
        if not KEY.fullmatch(key) or not isinstance(value, str):
            raise InvalidObject(
                f"{kind}: metadata.annotations {key!r}: {value!r} must be a qualified name and a string"
            )


def _check_labels(kind: str, labels: Mapping[str, Any]) -> None:
    for key, value in labels.items():
        if not KEY.fullmatch(key) or not isinstance(value, str) or not VALUE.fullmatch(value):
            raise InvalidObject(f"{kind}: label {key!r}: {value!r} must be a qualified name and at most 63 characters")


def _pod_labels(obj: Any) -> Iterator[Mapping[str, Any]]:
    """Labels of pod templates and of selectors, at whatever depth."""
    if isinstance(obj, Mapping):
        for name, value in obj.items():
            if name == "matchLabels":
                yield value or {}
            elif name == "template" and isinstance(value, Mapping):
                yield (value.get("metadata") or {}).get("labels") or {}
            if name != "annotations":
                yield from _pod_labels(value)
    elif isinstance(obj, list):
        for one in obj:
            yield from _pod_labels(one)
