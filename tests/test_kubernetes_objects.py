"""Kubernetes objects that we ship and write about are valid, by the schemas of each release; and what checks them."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.documents.blocks import PAGES, blocks
from tests.kubernetes_double import json_patched, merged
from tests.kubernetes_schemas import CUSTOM, VERSIONS, InvalidObject, check, definition_of, immutable
from tests.servers import missing

Json = dict[str, Any]
KUBECTL = shutil.which("kubectl")
CONTAINER: Json = {
    "name": "train",
    "image": "trainer",
    "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1", "memory": "64Mi"}},
}
LOG: Json = {"name": "log", "image": "log"}
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train-1", "labels": {"steward-run": "train-1"}},
    "spec": {"restartPolicy": "Never", "containers": [LOG, CONTAINER]},
}
VPA: Json = {
    "apiVersion": "autoscaling.k8s.io/v1",
    "kind": "VerticalPodAutoscaler",
    "metadata": {"name": "trainer"},
    "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "trainer"}},
}


@pytest.fixture
def _contracts() -> None:
    if definition_of("VerticalPodAutoscaler", "autoscaling.k8s.io/v1") is None:
        missing("a folder with CustomResourceDefinitions, in STEWARD_DATA,")


def changed(obj: Json, path: str, value: Any) -> Json:
    """The object with another value under a path such as ``spec/containers/0/name``."""
    result: Json = json_patched(obj, [{"op": "add", "path": f"/{path}", "value": value}])
    return result


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("spec/containers/0/comand", ["a"], "Additional properties are not allowed"),
        ("spec/containers/0/command", "a", "is not of type 'array'"),
        ("spec/containers/0/env", [{"name": "A", "value": 1}], "is not of type 'string'"),
        ("spec/containers/1/resources/limits/cpu", "1 core", "is not valid under any of the given schemas"),
        ("spec/containers/1/resources/limits/cpu", "1ki", "is not valid under any of the given schemas"),
        ("spec/restartPolicy", 1, "is not of type 'string'"),
        ("metadata/name", "Train_1", "must be a lowercase RFC 1123 subdomain"),
        ("metadata/labels/steward-run", "x" * 64, "at most 63 characters"),
        ("metadata/annotations", {"steward/a/b": "c"}, "must be a qualified name"),
        ("kind", "Pot", "has no Pot in v1"),
        ("apiVersion", "v2", "has no Pod in v2"),
        ("apiVersion", "", "needs apiVersion and kind"),
    ],
)
def test_an_object_that_a_server_would_refuse_is_refused(path: str, value: Any, text: str) -> None:
    check(POD)
    with pytest.raises(InvalidObject, match=text):
        check(changed(POD, path, value))


def test_each_release_is_asked() -> None:
    limited = changed(POD, "spec/resources", {"limits": {"cpu": "1"}})  # of a whole pod: from 1.32 on
    with pytest.raises(InvalidObject, match=r"by the schema of 1\.31: spec"):
        check(limited)
    check(limited, VERSIONS[1:])


@pytest.mark.usefixtures("_contracts")
@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("spec/recommenders", [{"name": "steward", "moon": 1}], "Additional properties are not allowed"),
        ("spec/recommenders", "steward", "is not of type 'array'"),
        ("spec/updatePolicy", {"updateMode": "Sometimes"}, "is not one of"),
        ("status", {"conditions": [{"type": "RecommendationProvided"}]}, "is a required property"),
        ("status", {"recommendation": {"containerRecommendations": [{"target": {"cpu": "x"}}]}}, "does not match"),
    ],
)
def test_a_custom_resource_that_its_definition_refuses_is_refused(path: str, value: Any, text: str) -> None:
    check(VPA)
    with pytest.raises(InvalidObject, match=text):
        check(changed(VPA, path, value))


@pytest.mark.usefixtures("_contracts")
def test_members_that_may_not_change_are_those_of_the_definition() -> None:
    assert ("spec", "trainer") in set(immutable("TrainJob", "trainer.kubeflow.org/v1alpha1"))
    assert list(immutable("VerticalPodAutoscaler", "autoscaling.k8s.io/v1")) == []
    assert list(immutable("Deployment", "apps/v1")) == []


def objects_of_pages() -> list[tuple[str, Json]]:
    """Each complete object in a YAML or JSON block of a page, with where it stands."""
    results = [
        (block.name, one)
        for page in PAGES
        for block in blocks(page)
        if block.language in {"yaml", "json"} and "apiVersion:" in block.text
        for one in yaml.safe_load_all(block.text)
        if one
    ]
    return [(f"{name} {one['kind']}", one) for name, one in results]


@pytest.mark.usefixtures("_contracts")
@pytest.mark.parametrize(
    ("_name", "obj"), objects_of_pages(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_objects_on_pages_are_valid(_name: str, obj: Json) -> None:
    assert obj["kind"] not in CUSTOM or definition_of(obj["kind"], obj["apiVersion"]), "a version that isn't defined"
    check(obj)


def test_pages_have_an_object_of_each_kind_that_we_speak_of() -> None:
    kinds = {obj["kind"] for _, obj in objects_of_pages()}
    assert {"APIService", "HorizontalPodAutoscaler", "Job", "MutatingWebhookConfiguration"} <= kinds
    assert {"ScaledObject", "VerticalPodAutoscaler"} <= kinds


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("merge", {"spec": {"nodeName": "a", "restartPolicy": None, "containers": [LOG]}}),
        ("strategic", {"spec": {"containers": [{"name": "train", "resources": {"limits": {"cpu": "2"}}}]}}),
        ("strategic", {"spec": {"nodeName": "a", "restartPolicy": None}}),
        ("json", [{"op": "add", "path": "/spec/containers/1/resources", "value": {"limits": {"a.b/c": "1"}}}]),
        ("json", [{"op": "add", "path": "/spec/containers/-", "value": {"name": "third", "image": "x"}}]),
        ("json", [{"op": "replace", "path": "/spec/restartPolicy", "value": "OnFailure"}]),
        ("json", [{"op": "remove", "path": "/metadata/labels/steward-run"}]),
    ],
)
def test_the_double_patches_as_kubectl_does(kind: str, patch: Any, tmp_path: Path) -> None:
    (tmp_path / "pod.json").write_text(json.dumps(POD))
    command = [str(KUBECTL), "patch", "--local", "--filename", str(tmp_path / "pod.json"), "--type", kind]
    done = subprocess.run(
        [*command, "--patch", json.dumps(patch), "--output", "json"], check=True, capture_output=True, text=True
    )
    own = json_patched(POD, patch) if kind == "json" else merged(copy.deepcopy(POD), patch, lists=kind == "strategic")
    assert by_name(own) == by_name(json.loads(done.stdout))


def by_name(pod: Json) -> Json:
    """A pod whose containers are in the order of their names: a strategic patch puts those that it names first."""
    containers = sorted(pod["spec"]["containers"], key=lambda one: str(one["name"]))
    containers = [{name: value for name, value in one.items() if value != {}} for one in containers]
    metadata = {name: value for name, value in pod["metadata"].items() if value}
    spec = {**pod["spec"], "containers": containers}
    return {"kind": pod["kind"], "metadata": metadata, "spec": spec}
