"""KEDA's external scaler over gRPC, which answers by the latest decisions."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from steward_client.errors import StewardError, Unreachable
from steward_client.scaling.amounts import Amounts, Subject, SubjectError

from .externalscaler_pb2 import (
    GetMetricSpecResponse,
    GetMetricsRequest,
    GetMetricsResponse,
    IsActiveResponse,
    MetricSpec,
    MetricValue,
    ScaledObjectRef,
)
from .trigger import Trigger

SERVICE = "externalscaler.ExternalScaler"
Context = grpc.aio.ServicerContext[Any, Any]
STATUS = {401: grpc.StatusCode.UNAUTHENTICATED, 403: grpc.StatusCode.PERMISSION_DENIED, 404: grpc.StatusCode.NOT_FOUND}
THREADS = 16


class Scaler:
    """Implementation of KEDA's external scaler, for any number of streams.

    Errors end a call with a gRPC status: INVALID_ARGUMENT for the metadata, UNAVAILABLE for an unreachable service.

    Args:
        decided: returns a subject's latest amounts; called in threads, as it may block.
        poll_seconds: seconds between two checks of a stream.
    """

    def __init__(self, decided: Callable[[Subject], Amounts], poll_seconds: float = 5.0) -> None:
        self._decided, self._poll = decided, poll_seconds
        self._threads = ThreadPoolExecutor(THREADS, "scaler")

    async def is_active(self, ref: ScaledObjectRef, context: Context) -> IsActiveResponse:
        """Whether the decided amount exceeds the activation size; an error ends the call with a gRPC status."""
        trigger = await self._trigger(ref, context)
        return IsActiveResponse(result=await self._amount(trigger, context) > trigger.activation_size)

    async def stream_is_active(self, ref: ScaledObjectRef, context: Context) -> AsyncIterator[IsActiveResponse]:
        """Yield whether the trigger is active, now and at each change; an error ends the call with a gRPC status."""
        trigger, last_sent = await self._trigger(ref, context), None
        while True:
            active = await self._amount(trigger, context) > trigger.activation_size
            if active != last_sent:
                yield IsActiveResponse(result=active)
                last_sent = active
            await asyncio.sleep(self._poll)

    async def get_metric_spec(self, ref: ScaledObjectRef, context: Context) -> GetMetricSpecResponse:
        """The trigger's metric, with the amount per replica as its target; INVALID_ARGUMENT for wrong metadata."""
        trigger = await self._trigger(ref, context)
        size = trigger.target_size
        return GetMetricSpecResponse(
            metricSpecs=[MetricSpec(metricName=trigger.metric, targetSize=max(1, round(size)), targetSizeFloat=size)]
        )

    async def get_metrics(self, request: GetMetricsRequest, context: Context) -> GetMetricsResponse:
        """The decided amount of the trigger's resource, in its unit; an error ends the call with a gRPC status."""
        trigger = await self._trigger(request.scaledObjectRef, context)
        amount = await self._amount(trigger, context)
        name = request.metricName or trigger.metric
        value = MetricValue(metricName=name, metricValue=math.ceil(amount), metricValueFloat=amount)
        return GetMetricsResponse(metricValues=[value])

    async def _trigger(self, ref: ScaledObjectRef, context: Context) -> Trigger:
        try:
            return Trigger.of(ref.scalerMetadata)
        except SubjectError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    async def _amount(self, trigger: Trigger, context: Context) -> float:
        """The decided amount; without one, ends the call with an error, on which KEDA uses its fallback."""
        loop = asyncio.get_running_loop()
        try:
            return trigger.amount(await loop.run_in_executor(self._threads, self._decided, trigger.subject))
        except SubjectError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except StewardError as error:
            await context.abort(STATUS.get(error.status, grpc.StatusCode.FAILED_PRECONDITION), str(error))
        except Unreachable as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))

    def handlers(self) -> grpc.GenericRpcHandler:
        """gRPC handlers of all methods of the protocol."""
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        active, ref = IsActiveResponse.SerializeToString, ScaledObjectRef.FromString
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "IsActive": unary(self.is_active, ref, active),
            "StreamIsActive": stream(self.stream_is_active, ref, active),
            "GetMetricSpec": unary(self.get_metric_spec, ref, GetMetricSpecResponse.SerializeToString),
            "GetMetrics": unary(self.get_metrics, GetMetricsRequest.FromString, GetMetricsResponse.SerializeToString),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)


@asynccontextmanager
async def serving(
    scaler: Scaler, address: str, credentials: grpc.ServerCredentials | None = None
) -> AsyncIterator[int]:
    """Context manager: a running gRPC server; the value is its port. Streams get 1 s at the end.

    Args:
        scaler: answers the calls.
        address: HOST:PORT; port 0: a free one.
        credentials: for TLS; None: plain text.

    Raises:
        OSError: the address can't be used.
    """
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])  # else a second one would share the port
    server.add_generic_rpc_handlers((scaler.handlers(),))
    try:
        if credentials is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise OSError(f"{address}: {error}") from error
    await server.start()
    try:
        yield port
    finally:
        await server.stop(grace=1.0)
        del server  # its finaliser needs the loop, which ends soon
        await asyncio.sleep(0)
