"""The external scaler over gRPC, asked by a client that is made from the protocol's file as KEDA has it."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_tools import protoc
from steward_client.scaling.cached import CachedFunction
from steward_client.scaling.keda.externalscaler_pb2 import GetMetricsRequest, ScaledObjectRef
from steward_client.scaling.keda.server import Scaler, serving

from tests.clients.scaling.conftest import WORKLOAD, Service

ROOT = Path(__file__).parents[3] / "clients/python"
PROTO = "steward_client/scaling/keda/externalscaler.proto"
TRIGGER = {"scalerAddress": "steward:9090", "workload": WORKLOAD, "resource": "gpus"}
Clock = Callable[[float], float]


class Keda:
    """What KEDA's operator does with a trigger: its calls, over a real connection."""

    def __init__(self, stub: Any) -> None:
        self.stub = stub

    def ref(self, **metadata: str) -> ScaledObjectRef:
        return ScaledObjectRef(name="trainer", namespace="default", scalerMetadata={**TRIGGER, **metadata})

    async def active(self, **metadata: str) -> bool:
        return bool((await self.stub.IsActive(self.ref(**metadata))).result)

    async def replicas(self, **metadata: str) -> float:
        """As a HorizontalPodAutoscaler reckons: the metric over its target average."""
        (spec,) = (await self.stub.GetMetricSpec(self.ref(**metadata))).metricSpecs
        request = GetMetricsRequest(scaledObjectRef=self.ref(**metadata), metricName=spec.metricName)
        (value,) = (await self.stub.GetMetrics(request)).metricValues
        assert value.metricName == spec.metricName
        return float(value.metricValueFloat / spec.targetSizeFloat)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the generator makes of the protocol's file."""
    out = tmp_path_factory.mktemp("keda")
    outputs = [f"--{name}={out}" for name in ("python_out", "pyi_out", "grpc_python_out")]
    assert protoc.main(["", f"-I{ROOT}", *outputs, PROTO]) == 0
    return out / PROTO.removesuffix(".proto")


@pytest.fixture
async def keda(service: Service, clock: Clock, generated: Path) -> AsyncIterator[Keda]:
    spec = importlib.util.spec_from_file_location("services", f"{generated}_pb2_grpc.py")
    assert spec is not None
    assert spec.loader is not None
    services = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(services)
    decided = CachedFunction(service.reader().of, 1.0, 300.0, lambda: clock(0))
    async with (
        serving(Scaler(decided, poll_seconds=0.02), "127.0.0.1:0") as port,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        yield Keda(services.ExternalScalerStub(channel))


async def test_replicas_follow_the_decisions_of_all_live_runs(keda: Keda, service: Service, clock: Clock) -> None:
    assert not await keda.active()
    assert await keda.replicas() == 0
    (first, had), (_, other) = service.start(), service.start()
    clock(1)
    assert await keda.active()
    assert await keda.replicas() == had + other
    assert await keda.replicas(targetSizeFromEnv="2") == (had + other) / 2
    now = service.report(first, 0, had, 90.0)
    assert now > had  # far too slow: more are asked for
    clock(1)
    assert await keda.replicas() == now + other
    assert await keda.replicas(workload="", run=first) == now
    service.finish(first)
    clock(1)
    assert not await keda.active(workload="", run=first)
    assert await keda.replicas() == other


async def test_many_askers_cost_one_call_and_a_service_that_is_away_costs_none(
    keda: Keda, service: Service, clock: Clock
) -> None:
    _, had = service.start()
    assert await asyncio.gather(*(keda.replicas() for _ in range(8))) == [had] * 8
    assert len([path for path in service.paths if path.startswith("/runs?")]) == 1
    service.away = True
    clock(299)
    assert await keda.replicas() == had
    clock(2)
    with pytest.raises(grpc.aio.AioRpcError, match="connection refused") as raised:
        await keda.replicas()
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    service.away = False
    clock(1)
    assert await keda.replicas() == had


async def test_a_stream_tells_what_changes_and_nothing_else(keda: Keda, service: Service, clock: Clock) -> None:
    stream = keda.stub.StreamIsActive(keda.ref())
    assert not (await stream.read()).result
    run, _ = service.start()
    clock(1)
    assert (await stream.read()).result
    service.finish(run)
    clock(1)
    assert not (await stream.read()).result
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(stream.read(), 0.2)
    stream.cancel()


async def test_what_is_wrong_in_a_trigger_is_named(keda: Keda, service: Service) -> None:
    service.start()
    wrong = [
        ({"resource": ""}, "INVALID_ARGUMENT", "scalerMetadata.resource is missing"),
        ({"resource": "gpu"}, "INVALID_ARGUMENT", "must be one of gpus, not 'gpu'"),
        ({"run": "x"}, "INVALID_ARGUMENT", "one of workload and run is needed"),
        ({"targetSize": "-1"}, "INVALID_ARGUMENT", "scalerMetadata.targetSize: '-1' is not a number above 0"),
        (
            {"activationSize": "-1"},
            "INVALID_ARGUMENT",
            "scalerMetadata.activationSize: '-1' is not a number 0 or above",
        ),
        ({"workload": "../runs"}, "INVALID_ARGUMENT", "'../runs' is not a name; accepted: letters, digits, . _ -"),
        ({"workload": "", "run": "x?state=y"}, "INVALID_ARGUMENT", "'x?state=y' is not a name"),
        ({"targetsize": "1"}, "INVALID_ARGUMENT", "scalerMetadata.targetsize is unknown; accepted: activationSize"),
        ({"workload": "other"}, "NOT_FOUND", "other"),
    ]
    for metadata, code, result in wrong:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await keda.active(**metadata)
        assert raised.value.code() is grpc.StatusCode[code], metadata
        assert result in str(raised.value.details())


def test_the_messages_are_those_of_the_protocols_file(generated: Path) -> None:
    for suffix in ("_pb2.py", "_pb2.pyi"):
        committed = (ROOT / PROTO.replace(".proto", suffix)).read_text()
        assert Path(f"{generated}{suffix}").read_text() == committed, (
            "messages are stale: run `make openapi`, and commit"
        )
