"""Decisions as metrics: read by Prometheus' own parser, and as a HorizontalPodAutoscaler's controller asks for them."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient
from steward_client.errors import StewardError
from steward_client.kubernetes import parse_quantity
from steward_client.scaling import metrics
from steward_client.scaling.metrics import METRIC, MetricsAdapter
from steward_client.scaling.selector import SelectorError, selector

from tests.batched import SPEC
from tests.clients.scaling.conftest import WORKLOAD, Service
from tests.kubernetes_schemas import check

GROUP = "external.metrics.k8s.io"


class Autoscaler:
    """Finds an external metric by the API's discovery documents, then its value, as Kubernetes does."""

    def __init__(self, http: TestClient) -> None:
        self.http = http

    def _get(self, path: str, **query: str) -> Any:
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def value(self, metric: str, selecting: str) -> float:
        """The sum over all series that the selector leaves."""
        (group,) = (one for one in self._get("/apis")["groups"] if one["name"] == GROUP)
        version = self._get(f"/apis/{GROUP}")["preferredVersion"]["groupVersion"]
        assert version == group["preferredVersion"]["groupVersion"]
        (resource,) = (one for one in self._get(f"/apis/{version}")["resources"] if one["name"] == metric)
        assert resource["namespaced"]
        assert "get" in resource["verbs"]
        response = self._get(f"/apis/{version}/namespaces/default/{metric}", labelSelector=selecting)
        assert (response["kind"], response["apiVersion"]) == (resource["kind"], version)
        return float(sum(parse_quantity(one["value"]) for one in response["items"]))


@pytest.fixture
def adapter(service: Service) -> TestClient:
    reader = service.reader()
    return TestClient(MetricsAdapter(reader.by_workload).app())


def amounts_of(adapter: TestClient) -> dict[str, float]:
    """All samples of `/metrics` by name and labels."""
    text = adapter.get("/metrics").text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {",".join((one.name, *sorted(one.labels.values(), reverse=True))): one.value for one in samples}


def test_series_are_of_workloads_and_resources_however_many_runs_there_are(
    adapter: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.client.post("/workloads", json={**SPEC, "name": "other"})
    had = sum(gpus for _, gpus in (service.start() for _ in range(3)))
    _, other = service.start("other")
    left = {"steward_decided_series_left_out": 0.0}
    assert amounts_of(adapter) == {f"{METRIC},{WORKLOAD},gpus": had, f"{METRIC},other,gpus": other} | left
    autoscaler = Autoscaler(adapter)
    assert autoscaler.value(METRIC, f"workload={WORKLOAD},resource=gpus") == had
    assert autoscaler.value(METRIC, "workload!=other") == had
    assert autoscaler.value(METRIC, "") == had + other
    assert autoscaler.value(METRIC, "workload=idle") == 0
    monkeypatch.setattr(metrics, "MOST_SERIES", 1)
    assert amounts_of(adapter) == {f"{METRIC},other,gpus": other, "steward_decided_series_left_out": 1}
    assert adapter.get(f"{metrics.API}/namespaces/x/{METRIC}").json()["reason"] == "BadRequest"


def test_the_documents_of_discovery_and_refusals_are_valid(adapter: TestClient) -> None:
    for path in ("/apis", f"/apis/{GROUP}", metrics.API):
        check(adapter.get(path).json())
    check(adapter.get(f"{metrics.API}/namespaces/x/queue").json())


def test_what_cant_be_told_is_refused_as_kubernetes_does(adapter: TestClient, service: Service) -> None:
    assert (
        adapter.get(f"{metrics.API}/namespaces/x/queue").json()["message"]
        == f"metric 'queue' is not there; there is {METRIC}"
    )
    path = f"{metrics.API}/namespaces/x/{METRIC}"
    assert "can't be read from '=x' on" in adapter.get(path, params={"labelSelector": "=x"}).json()["message"]
    service.away = True
    answer = adapter.get(path)
    assert (answer.status_code, answer.json()["kind"], answer.json()["reason"]) == (503, "Status", "ServiceUnavailable")
    assert adapter.get("/metrics").status_code == 503


def test_a_refusal_of_the_service_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def refuse() -> NoReturn:
        raise StewardError(401, {"title": "Unauthorised", "detail": "send a key"})

    answer = TestClient(MetricsAdapter(refuse).app()).get("/metrics")
    assert (answer.status_code, answer.text) == (503, "401 Unauthorised: send a key\n")
    assert caplog.messages == ["401 Unauthorised: send a key"]


@pytest.mark.parametrize(
    ("text", "fits", "unfit"),
    [
        ("a=1", {"a": "1"}, {"a": "2"}),
        ("a == 1, b!=2", {"a": "1"}, {"a": "1", "b": "2"}),
        ("a in (1, 2)", {"a": "2"}, {"a": "3"}),
        ("a notin (1,2),b", {"b": ""}, {"a": "1", "b": ""}),
        ("!a", {}, {"a": ""}),
        ("a=", {"a": ""}, {"a": "1"}),
    ],
)
def test_selectors(text: str, fits: dict[str, str], unfit: dict[str, str]) -> None:
    assert selector(text)(fits)
    assert not selector(text)(unfit)


@pytest.mark.parametrize("text", ["=", "a in 1", "a=1 b=2", "a>1", "a=1,,b=2", "a" * 5_000])
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorError, match="labelSelector"):
        selector(text)
