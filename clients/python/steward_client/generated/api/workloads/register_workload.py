from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.cluster_spec import ClusterSpec
from ...models.inference_spec import InferenceSpec
from ...models.iterative_spec import IterativeSpec
from ...models.problem import Problem
from ...models.workflow_spec import WorkflowSpec
from ...models.workload_read import WorkloadRead
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: ClusterSpec | InferenceSpec | IterativeSpec | WorkflowSpec,
    idempotency_key: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/workloads",
    }

    if isinstance(body, ClusterSpec):
        _kwargs["json"] = body.to_dict()
    elif isinstance(body, InferenceSpec):
        _kwargs["json"] = body.to_dict()
    elif isinstance(body, IterativeSpec):
        _kwargs["json"] = body.to_dict()
    else:
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | WorkloadRead | None:
    if response.status_code == 200:
        response_200 = WorkloadRead.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = WorkloadRead.from_dict(response.json())

        return response_201

    if response.status_code == 400:
        response_400 = Problem.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = Problem.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = Problem.from_dict(response.json())

        return response_403

    if response.status_code == 409:
        response_409 = Problem.from_dict(response.json())

        return response_409

    if response.status_code == 413:
        response_413 = Problem.from_dict(response.json())

        return response_413

    if response.status_code == 415:
        response_415 = Problem.from_dict(response.json())

        return response_415

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
) -> Response[Problem | WorkloadRead]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ClusterSpec | InferenceSpec | IterativeSpec | WorkflowSpec,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[Problem | WorkloadRead]:
    """Register a workload

     Register a workload. Repeating the same spec changes nothing and returns 200.

    Args:
        idempotency_key (None | str | Unset): Chosen by the client: a request repeated with the
            same key runs once and gets the same response.
        body (ClusterSpec | InferenceSpec | IterativeSpec | WorkflowSpec):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | WorkloadRead]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: ClusterSpec | InferenceSpec | IterativeSpec | WorkflowSpec,
    idempotency_key: None | str | Unset = UNSET,
) -> Problem | WorkloadRead | None:
    """Register a workload

     Register a workload. Repeating the same spec changes nothing and returns 200.

    Args:
        idempotency_key (None | str | Unset): Chosen by the client: a request repeated with the
            same key runs once and gets the same response.
        body (ClusterSpec | InferenceSpec | IterativeSpec | WorkflowSpec):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | WorkloadRead
    """

    return sync_detailed(
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ClusterSpec | InferenceSpec | IterativeSpec | WorkflowSpec,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[Problem | WorkloadRead]:
    """Register a workload

     Register a workload. Repeating the same spec changes nothing and returns 200.

    Args:
        idempotency_key (None | str | Unset): Chosen by the client: a request repeated with the
            same key runs once and gets the same response.
        body (ClusterSpec | InferenceSpec | IterativeSpec | WorkflowSpec):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | WorkloadRead]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: ClusterSpec | InferenceSpec | IterativeSpec | WorkflowSpec,
    idempotency_key: None | str | Unset = UNSET,
) -> Problem | WorkloadRead | None:
    """Register a workload

     Register a workload. Repeating the same spec changes nothing and returns 200.

    Args:
        idempotency_key (None | str | Unset): Chosen by the client: a request repeated with the
            same key runs once and gets the same response.
        body (ClusterSpec | InferenceSpec | IterativeSpec | WorkflowSpec):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | WorkloadRead
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
