"""The recommender against a double of Kubernetes' API."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from steward_client.errors import StewardError
from steward_client.kubernetes import Conversion, KubernetesError, QuantityError, parse_quantity, quantity
from steward_client.scaling.amounts import Amounts, Subject
from steward_client.scaling.recommender import GROUP, Recommender

from tests.clients.scaling.conftest import WORKLOAD, Service
from tests.kubernetes_double import KubernetesDouble

PLURAL = "verticalpodautoscalers"
NOTES = {
    "steward/workload": WORKLOAD,
    "steward/container": "trainer",
    "steward/resources": "cpu=gpus*1500m,memory=gpus*1Gi",
}
START = datetime(2026, 1, 1, tzinfo=UTC)
Clock = Callable[[float], float]


def vpa(name: str, notes: dict[str, str] = NOTES, **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name, "namespace": "default", "annotations": notes},
        "spec": {"targetRef": target, "recommenders": [{"name": "steward"}], **spec},
    }


@pytest.fixture
def kubernetes() -> KubernetesDouble:
    return KubernetesDouble()


@pytest.fixture
def recommender(kubernetes: KubernetesDouble, service: Service, clock: Clock) -> Recommender:
    return Recommender(kubernetes.api(), service.reader().of, now=lambda: START + timedelta(seconds=clock(0)))


def last_event(kubernetes: KubernetesDouble, path: str) -> tuple[str, str]:
    """Whether a recommendation is provided, or why not."""
    (result,) = (
        one for one in kubernetes.objects[path]["status"]["conditions"] if one["type"] == "RecommendationProvided"
    )
    return result["status"], result.get("message", "")


def test_recommendations_follow_decisions_and_are_written_once(
    recommender: Recommender, kubernetes: KubernetesDouble, service: Service, clock: Clock
) -> None:
    path = kubernetes.add(GROUP, PLURAL, vpa("trainer"))
    kubernetes.add(GROUP, PLURAL, vpa("others", recommenders=[{"name": "default"}]))
    kubernetes.add(GROUP, PLURAL, vpa("nobodys", recommenders=[]))
    assert recommender.look() == 1
    assert last_event(kubernetes, path) == ("False", "no run is live; the last one stands")
    run, had = service.start()
    kubernetes.objects[path]["status"]["conditions"].append({"type": "LowConfidence", "status": "True"})
    assert (recommender.look(), recommender.look()) == (1, 0)
    (container,) = kubernetes.objects[path]["status"]["recommendation"]["containerRecommendations"]
    assert container["containerName"] == "trainer"
    assert container["target"] == container["uncappedTarget"] == container["lowerBound"] == container["upperBound"]
    assert parse_quantity(container["target"]["cpu"]) * 2 == 3 * int(had)
    assert parse_quantity(container["target"]["memory"]) == int(had) * 2**30
    assert last_event(kubernetes, path) == ("True", "")
    assert len(kubernetes.objects[path]["status"]["conditions"]) == 2
    more = service.report(run, 0, had, 90.0)
    clock(60)
    assert recommender.look() == 1
    status = kubernetes.objects[path]["status"]
    assert status["recommendation"]["containerRecommendations"][0]["target"]["cpu"] == quantity(more * 1.5)
    assert status["conditions"][-1]["lastTransitionTime"] == "2026-01-01T00:00:00Z"  # it was true before
    assert kubernetes.objects[path]["spec"] == vpa("trainer")["spec"]


def test_what_an_object_allows_bounds_it(
    recommender: Recommender, kubernetes: KubernetesDouble, service: Service
) -> None:
    service.start()
    policies = [{"containerName": "*", "minAllowed": {"memory": "64Gi"}, "maxAllowed": {"cpu": "500m"}}]
    path = kubernetes.add(GROUP, PLURAL, vpa("trainer", resourcePolicy={"containerPolicies": policies}))
    assert recommender.look() == 1
    (container,) = kubernetes.objects[path]["status"]["recommendation"]["containerRecommendations"]
    assert container["target"] == {"cpu": "500m", "memory": str(64 * 2**30)}
    assert container["uncappedTarget"] != container["target"]


def test_what_is_wrong_with_one_is_told_in_it_and_stops_no_other(
    recommender: Recommender, kubernetes: KubernetesDouble, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.start()
    wrong = {
        "a": ({**NOTES, "steward/container": ""}, "annotation steward/container is missing"),
        "b": ({**NOTES, "steward/resources": "cpu"}, "annotation steward/resources: 'cpu' is not NAME=RESOURCE"),
        "c": ({**NOTES, "steward/resources": "cpu=cores"}, "must be one of gpus, not 'cores'"),
        "d": ({**NOTES, "steward/workload": "none"}, "none"),
        "e": ({}, "one of workload and run is needed"),
    }
    paths = {name: kubernetes.add(GROUP, PLURAL, vpa(name, notes)) for name, (notes, _) in wrong.items()}
    kubernetes.add(GROUP, PLURAL, vpa("f"))
    assert recommender.look() == len(wrong) + 1
    for name, path in paths.items():
        status, message = last_event(kubernetes, path)
        assert status == "False"
        assert wrong[name][1] in message
    kubernetes.add(GROUP, PLURAL, vpa("g"))
    service.away = True
    assert recommender.look() == 0
    assert "connection refused" in caplog.text
    kubernetes.plan = [403]
    with pytest.raises(KubernetesError, match=r"403 pods .* cannot patch .*; allow it to the service account"):
        recommender.look()


def test_a_refused_key_is_logged_too(kubernetes: KubernetesDouble, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_: Subject) -> Amounts:
        raise StewardError(401, {"title": "Unauthorised", "detail": "send a key"})

    path = kubernetes.add(GROUP, PLURAL, vpa("trainer"))
    assert Recommender(kubernetes.api(), refuse).look() == 1
    assert last_event(kubernetes, path) == ("False", "401 Unauthorised: send a key")
    assert caplog.messages == ["default/trainer: 401 Unauthorised: send a key"]


def test_every_object_is_seen_though_the_list_expires_and_calls_are_put_off(
    recommender: Recommender, kubernetes: KubernetesDouble
) -> None:
    paths = [kubernetes.add(GROUP, PLURAL, vpa(name)) for name in "abcde"]
    kubernetes.expires = True
    kubernetes.plan = [429, 504]
    assert recommender.look() == len(paths)
    assert kubernetes.pauses == [1.0, 5.0]  # the second server asked for more
    kubernetes.plan = [410]
    with pytest.raises(KubernetesError, match="410 The provided continue parameter is too old"):
        recommender.look()
    kubernetes.pauses.clear()
    kubernetes.plan = [429] * 4
    with pytest.raises(KubernetesError, match="429 too many requests"):
        recommender.look()
    assert kubernetes.pauses == [1.0] * 3


@pytest.mark.parametrize(("text", "number"), [("2", 2), ("500m", 0.5), ("1Ki", 1024), ("1.5G", 1.5e9), ("2e3", 2000)])
def test_quantities(text: str, number: float) -> None:
    assert parse_quantity(text) == number
    assert parse_quantity(quantity(number)) == number


def test_quantities_are_rounded_up_and_others_refused() -> None:
    assert quantity(0.1234) == "124m"
    assert Conversion.parse("memory=gb*1G").of(1.5) == "1500000000"
    for text in ("", "1 Gi", "Gi", "1e", "nan"):
        with pytest.raises(QuantityError, match="is not a quantity"):
            parse_quantity(text)
