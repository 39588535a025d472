from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.batch_prediction import BatchPrediction
from ...models.cluster_prediction import ClusterPrediction
from ...models.prediction import Prediction
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    workload: str,
    version: int,
    *,
    application: str | Unset = UNSET,
    gpus: int | Unset = UNSET,
    batch: int | Unset = UNSET,
    nodes: int | Unset = UNSET,
    node_class: str | Unset = UNSET,
    beside: str | Unset = UNSET,
    loss: str | Unset = UNSET,
    metric: str | Unset = UNSET,
    until: float | Unset = UNSET,
    variant: str | Unset = UNSET,
    server: str | Unset = UNSET,
    at: float | Unset = UNSET,
    allocation: list[str] | Unset = UNSET,
    feature: list[str] | Unset = UNSET,
    iteration: int | Unset = 0,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["application"] = application

    params["gpus"] = gpus

    params["batch"] = batch

    params["nodes"] = nodes

    params["node_class"] = node_class

    params["beside"] = beside

    params["loss"] = loss

    params["metric"] = metric

    params["until"] = until

    params["variant"] = variant

    params["server"] = server

    params["at"] = at

    json_allocation: list[str] | Unset = UNSET
    if not isinstance(allocation, Unset):
        json_allocation = allocation

    params["allocation"] = json_allocation

    json_feature: list[str] | Unset = UNSET
    if not isinstance(feature, Unset):
        json_feature = feature

    params["feature"] = json_feature

    params["iteration"] = iteration

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/workloads/{workload}/models/{version}/predict".format(
            workload=quote(str(workload), safe=""),
            version=quote(str(version), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> BatchPrediction | ClusterPrediction | Prediction | Problem | None:
    if response.status_code == 200:

        def _parse_response_200(data: object) -> BatchPrediction | ClusterPrediction | Prediction:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                response_200_type_0 = ClusterPrediction.from_dict(data)

                return response_200_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                response_200_type_1 = BatchPrediction.from_dict(data)

                return response_200_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            response_200_type_2 = Prediction.from_dict(data)

            return response_200_type_2

        response_200 = _parse_response_200(response.json())

        return response_200

    if response.status_code == 401:
        response_401 = Problem.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = Problem.from_dict(response.json())

        return response_403

    if response.status_code == 404:
        response_404 = Problem.from_dict(response.json())

        return response_404

    if response.status_code == 409:
        response_409 = Problem.from_dict(response.json())

        return response_409

    if response.status_code == 421:
        response_421 = Problem.from_dict(response.json())

        return response_421

    if response.status_code == 422:
        response_422 = Problem.from_dict(response.json())

        return response_422

    if response.status_code == 429:
        response_429 = Problem.from_dict(response.json())

        return response_429

    if response.status_code == 503:
        response_503 = Problem.from_dict(response.json())

        return response_503

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[BatchPrediction | ClusterPrediction | Prediction | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    workload: str,
    version: int,
    *,
    client: AuthenticatedClient | Client,
    application: str | Unset = UNSET,
    gpus: int | Unset = UNSET,
    batch: int | Unset = UNSET,
    nodes: int | Unset = UNSET,
    node_class: str | Unset = UNSET,
    beside: str | Unset = UNSET,
    loss: str | Unset = UNSET,
    metric: str | Unset = UNSET,
    until: float | Unset = UNSET,
    variant: str | Unset = UNSET,
    server: str | Unset = UNSET,
    at: float | Unset = UNSET,
    allocation: list[str] | Unset = UNSET,
    feature: list[str] | Unset = UNSET,
    iteration: int | Unset = 0,
) -> Response[BatchPrediction | ClusterPrediction | Prediction | Problem]:
    """Get a prediction

     Predict the measurements of an unseen run, with an interval; parameters depend on the workload's
    kind.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.
        application (str | Unset):
        gpus (int | Unset):
        batch (int | Unset):
        nodes (int | Unset):
        node_class (str | Unset):
        beside (str | Unset):
        loss (str | Unset):
        metric (str | Unset):
        until (float | Unset):
        variant (str | Unset):
        server (str | Unset):
        at (float | Unset):
        allocation (list[str] | Unset):
        feature (list[str] | Unset):
        iteration (int | Unset):  Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BatchPrediction | ClusterPrediction | Prediction | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        version=version,
        application=application,
        gpus=gpus,
        batch=batch,
        nodes=nodes,
        node_class=node_class,
        beside=beside,
        loss=loss,
        metric=metric,
        until=until,
        variant=variant,
        server=server,
        at=at,
        allocation=allocation,
        feature=feature,
        iteration=iteration,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    workload: str,
    version: int,
    *,
    client: AuthenticatedClient | Client,
    application: str | Unset = UNSET,
    gpus: int | Unset = UNSET,
    batch: int | Unset = UNSET,
    nodes: int | Unset = UNSET,
    node_class: str | Unset = UNSET,
    beside: str | Unset = UNSET,
    loss: str | Unset = UNSET,
    metric: str | Unset = UNSET,
    until: float | Unset = UNSET,
    variant: str | Unset = UNSET,
    server: str | Unset = UNSET,
    at: float | Unset = UNSET,
    allocation: list[str] | Unset = UNSET,
    feature: list[str] | Unset = UNSET,
    iteration: int | Unset = 0,
) -> BatchPrediction | ClusterPrediction | Prediction | Problem | None:
    """Get a prediction

     Predict the measurements of an unseen run, with an interval; parameters depend on the workload's
    kind.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.
        application (str | Unset):
        gpus (int | Unset):
        batch (int | Unset):
        nodes (int | Unset):
        node_class (str | Unset):
        beside (str | Unset):
        loss (str | Unset):
        metric (str | Unset):
        until (float | Unset):
        variant (str | Unset):
        server (str | Unset):
        at (float | Unset):
        allocation (list[str] | Unset):
        feature (list[str] | Unset):
        iteration (int | Unset):  Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BatchPrediction | ClusterPrediction | Prediction | Problem
    """

    return sync_detailed(
        workload=workload,
        version=version,
        client=client,
        application=application,
        gpus=gpus,
        batch=batch,
        nodes=nodes,
        node_class=node_class,
        beside=beside,
        loss=loss,
        metric=metric,
        until=until,
        variant=variant,
        server=server,
        at=at,
        allocation=allocation,
        feature=feature,
        iteration=iteration,
    ).parsed


async def asyncio_detailed(
    workload: str,
    version: int,
    *,
    client: AuthenticatedClient | Client,
    application: str | Unset = UNSET,
    gpus: int | Unset = UNSET,
    batch: int | Unset = UNSET,
    nodes: int | Unset = UNSET,
    node_class: str | Unset = UNSET,
    beside: str | Unset = UNSET,
    loss: str | Unset = UNSET,
    metric: str | Unset = UNSET,
    until: float | Unset = UNSET,
    variant: str | Unset = UNSET,
    server: str | Unset = UNSET,
    at: float | Unset = UNSET,
    allocation: list[str] | Unset = UNSET,
    feature: list[str] | Unset = UNSET,
    iteration: int | Unset = 0,
) -> Response[BatchPrediction | ClusterPrediction | Prediction | Problem]:
    """Get a prediction

     Predict the measurements of an unseen run, with an interval; parameters depend on the workload's
    kind.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.
        application (str | Unset):
        gpus (int | Unset):
        batch (int | Unset):
        nodes (int | Unset):
        node_class (str | Unset):
        beside (str | Unset):
        loss (str | Unset):
        metric (str | Unset):
        until (float | Unset):
        variant (str | Unset):
        server (str | Unset):
        at (float | Unset):
        allocation (list[str] | Unset):
        feature (list[str] | Unset):
        iteration (int | Unset):  Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BatchPrediction | ClusterPrediction | Prediction | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        version=version,
        application=application,
        gpus=gpus,
        batch=batch,
        nodes=nodes,
        node_class=node_class,
        beside=beside,
        loss=loss,
        metric=metric,
        until=until,
        variant=variant,
        server=server,
        at=at,
        allocation=allocation,
        feature=feature,
        iteration=iteration,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    workload: str,
    version: int,
    *,
    client: AuthenticatedClient | Client,
    application: str | Unset = UNSET,
    gpus: int | Unset = UNSET,
    batch: int | Unset = UNSET,
    nodes: int | Unset = UNSET,
    node_class: str | Unset = UNSET,
    beside: str | Unset = UNSET,
    loss: str | Unset = UNSET,
    metric: str | Unset = UNSET,
    until: float | Unset = UNSET,
    variant: str | Unset = UNSET,
    server: str | Unset = UNSET,
    at: float | Unset = UNSET,
    allocation: list[str] | Unset = UNSET,
    feature: list[str] | Unset = UNSET,
    iteration: int | Unset = 0,
) -> BatchPrediction | ClusterPrediction | Prediction | Problem | None:
    """Get a prediction

     Predict the measurements of an unseen run, with an interval; parameters depend on the workload's
    kind.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.
        application (str | Unset):
        gpus (int | Unset):
        batch (int | Unset):
        nodes (int | Unset):
        node_class (str | Unset):
        beside (str | Unset):
        loss (str | Unset):
        metric (str | Unset):
        until (float | Unset):
        variant (str | Unset):
        server (str | Unset):
        at (float | Unset):
        allocation (list[str] | Unset):
        feature (list[str] | Unset):
        iteration (int | Unset):  Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BatchPrediction | ClusterPrediction | Prediction | Problem
    """

    return (
        await asyncio_detailed(
            workload=workload,
            version=version,
            client=client,
            application=application,
            gpus=gpus,
            batch=batch,
            nodes=nodes,
            node_class=node_class,
            beside=beside,
            loss=loss,
            metric=metric,
            until=until,
            variant=variant,
            server=server,
            at=at,
            allocation=allocation,
            feature=feature,
            iteration=iteration,
        )
    ).parsed
