"""Replicas of Ray Serve, set through a double of its API; ``tests/engines/test_ray_serve.py`` has the real one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from steward_client.errors import StewardError, Unreachable
from steward_client.ray_api import RayApi, RayError
from steward_client.scaling.amounts import Subject, SubjectError
from steward_client.scaling.cached import CachedFunction
from steward_client.scaling.replicas import ReplicaSetter, Target

from tests.clients.scaling.conftest import WORKLOAD, Service

Make = Callable[..., ReplicaSetter]


@dataclass
class ServeDouble:
    """Two applications, of which one lets outside scalers in, each with two deployments; as Ray Serve 2.60 answers."""

    away: bool = False
    replicas: dict[str, dict[str, int]] = field(
        default_factory=lambda: {name: {"Model": 1, "Front": 1} for name in ("shop", "closed")}
    )
    posted: list[tuple[str, int]] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.away:
            raise httpx.ConnectError("connection refused", request=request)
        if request.method == "GET":
            return httpx.Response(200, json={"applications": {name: self._details(name) for name in self.replicas}})
        _, _, _, _, application, _, deployment, _ = request.url.path.split("/")
        if application == "closed":
            return httpx.Response(412, json={"error": "external_scaler_enabled is not set to true"})
        number = json.loads(request.content)["target_num_replicas"]
        self.replicas[application][deployment] = number
        self.posted.append((f"{application}/{deployment}", number))
        return httpx.Response(200, json={"message": "Scaling request received."})

    def _details(self, application: str) -> dict[str, Any]:
        deployments = {name: {"target_num_replicas": number} for name, number in self.replicas[application].items()}
        return {"external_scaler_enabled": application != "closed", "deployments": deployments}


@pytest.fixture
def serve() -> ServeDouble:
    return ServeDouble()


@pytest.fixture
def make(service: Service, serve: ServeDouble, monkeypatch: pytest.MonkeyPatch) -> Make:
    client, through = httpx.Client, httpx.MockTransport(serve)
    with monkeypatch.context() as patch:
        patch.setattr(httpx, "Client", lambda **named: client(**named, transport=through))
        api = RayApi("http://ray")

    def setter(*targets: str, workload: str = WORKLOAD) -> ReplicaSetter:
        decided = CachedFunction(service.reader().of, 0.0, 300.0)
        return ReplicaSetter(api, decided, Subject(workload), [Target.parse(one) for one in targets])

    return setter


def test_replicas_follow_what_all_runs_have_together(service: Service, serve: ServeDouble, make: Make) -> None:
    setter = make("shop/Model=gpus/2", "shop/Front=gpus/8")
    assert (setter.look(), serve.posted) == (0, []), "no run is live: they stay"
    gpus = [service.start()[1] for _ in range(2)]
    assert gpus == [4, 4]
    assert setter.look() == 1
    assert serve.replicas["shop"] == {"Model": 4, "Front": 1}
    assert setter.look() == 0, "what is so already isn't set again"
    serve.replicas["shop"]["Model"] = 1  # the application was deployed anew
    assert setter.look() == 1
    assert serve.posted == [("shop/Model", 4)] * 2


def test_while_the_service_is_away_replicas_stay(service: Service, serve: ServeDouble, make: Make) -> None:
    _, gpus = service.start()
    setter = make("shop/Model=gpus")
    service.away = True
    with pytest.raises(Unreachable, match="connection refused"):
        setter.look()  # nothing is known yet
    assert not serve.posted
    service.away = False
    setter.look()
    service.away = True
    serve.replicas["shop"]["Model"] = 1
    assert setter.look() == 1, "the last decision holds"
    assert serve.replicas["shop"]["Model"] == gpus


def test_what_cannot_be_set_is_told_and_the_others_are_set(
    service: Service, serve: ServeDouble, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    service.start()
    assert make("closed/Model=gpus", "shop/Nothing=gpus", "none/Model=gpus", "shop/Front=gpus").look() == 1
    assert serve.posted == [("shop/Front", 4)]
    assert [record.getMessage() for record in caplog.records] == [
        "closed/Model: set `external_scaler_enabled: true` in the application's configuration, which says false",
        "shop/Nothing: there is no such deployment; there are: Front, Model",
        "none/Model: there is no such application; there are: closed, shop",
    ]
    with pytest.raises(SubjectError, match=r"'cores' isn't decided; accepted: gpus"):
        make("shop/Model=cores").look()
    with pytest.raises(StewardError):
        make("shop/Model=gpus", workload="unknown").look()
    serve.away = True
    with pytest.raises(RayError, match="Ray doesn't answer at http://ray"):
        make("shop/Model=gpus").look()


@pytest.mark.parametrize("text", ["", "shop=gpus", "shop/Model", "/Model=gpus", "shop/Model=gpus/0", "shop/Model=a/x"])
def test_what_names_no_deployment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="APPLICATION/DEPLOYMENT=RESOURCE is accepted"):
        Target.parse(text)


def test_amounts_are_rounded_up_to_whole_replicas() -> None:
    one = Target("shop", "Model", "cores", 0.1)
    assert [one.replicas({"cores": amount}) for amount in (0.0, 0.1, 0.1 + 0.2, 0.31)] == [0, 1, 3, 4]
