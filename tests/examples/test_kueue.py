"""The webhook for queued jobs, called as Kubernetes does: an AdmissionReview over HTTP, whose patch is applied."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.batched import SPEC
from tests.clients.scaling.conftest import WORKLOAD, Service
from tests.kubernetes_double import KubernetesDouble, json_patched

NOTES = {"steward/workload": WORKLOAD, "steward/container": "train", "steward/resources": "example.com/gpu=gpus"}
Json = dict[str, Any]
Admit = Callable[[Json], Json]


@pytest.fixture
def service(client: Any) -> Service:
    assert client.post("/workloads", json=SPEC).status_code == 201
    return Service(client)


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def kubernetes(service: Service, warnings: list[str], monkeypatch: pytest.MonkeyPatch) -> KubernetesDouble:
    """The double, which has whatever is made reviewed first."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples/kueue"))
    import steward_kueue

    http = TestClient(steward_kueue.Webhook(service.reader()).app())

    def admit(obj: Json) -> Json:
        request = {"uid": "42", "operation": "CREATE", "object": obj}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        answer = http.post("/mutate", json=review).json()
        assert (answer["kind"], answer["response"]["uid"], answer["response"]["allowed"]) == (
            "AdmissionReview",
            "42",
            True,
        )
        warnings.extend(answer["response"].get("warnings", ()))
        patched: Json = json_patched(obj, json.loads(base64.b64decode(answer["response"].get("patch", b"W10="))))
        return patched

    return KubernetesDouble(admit=admit)


def template(**container: Any) -> Json:
    others = {"name": "log", "image": "log"}
    return {
        "spec": {"restartPolicy": "Never", "containers": [others, {"name": "train", "image": "trainer", **container}]}
    }


def job(notes: Json, version: str = "batch/v1", name: str = "train", **spec: Any) -> Json:
    return {"apiVersion": version, "kind": "Job", "metadata": {"name": name, "annotations": notes}, "spec": spec}


def test_a_job_asks_for_what_was_decided(kubernetes: KubernetesDouble, service: Service, warnings: list[str]) -> None:
    _, gpus = service.start()
    before = {"resources": {"limits": {"memory": "1Gi"}}}
    path = kubernetes.add("/apis/batch/v1", "jobs", job(NOTES, suspend=True, template=template(**before)))
    log, train = kubernetes.objects[path]["spec"]["template"]["spec"]["containers"]
    request = {"example.com/gpu": f"{gpus:.0f}"}
    assert train["resources"] == {"requests": request, "limits": {"memory": "1Gi", **request}}
    assert "resources" not in log
    volcano = job(NOTES, "batch.volcano.sh/v1alpha1", tasks=[{"name": "worker", "template": template()}])
    path = kubernetes.add("/apis/batch.volcano.sh/v1alpha1", "jobs", volcano)
    (task,) = kubernetes.objects[path]["spec"]["tasks"]
    assert task["template"]["spec"]["containers"][1]["resources"]["requests"] == request
    assert warnings == []


def test_what_it_cant_say_leaves_a_job_as_it_is(
    kubernetes: KubernetesDouble, service: Service, warnings: list[str]
) -> None:
    def as_it_is(notes: Json) -> bool:
        name = f"train-{len(kubernetes.objects)}"
        path = kubernetes.add("/apis/batch/v1", "jobs", job(notes, name=name, template=template()))
        return bool(kubernetes.objects[path]["spec"] == {"template": template()})

    assert as_it_is({})
    assert as_it_is(NOTES)  # nothing is live
    assert warnings == []
    service.start()
    assert as_it_is({**NOTES, "steward/resources": "cpu=cores"})
    assert as_it_is({**NOTES, "steward/workload": "none"})
    service.away = True
    assert as_it_is(NOTES)
    assert ["'cores'" in warnings[0], "none" in warnings[1], "connection refused" in warnings[2]] == [True] * 3
