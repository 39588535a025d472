from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.cluster_patch import ClusterPatch
from ...models.inference_patch import InferencePatch
from ...models.iterative_patch import IterativePatch
from ...models.problem import Problem
from ...models.workflow_patch import WorkflowPatch
from ...models.workload_read import WorkloadRead
from ...types import Response


def _get_kwargs(
    workload: str,
    *,
    body: ClusterPatch | InferencePatch | IterativePatch | WorkflowPatch,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/workloads/{workload}".format(
            workload=quote(str(workload), safe=""),
        ),
    }

    if isinstance(body, ClusterPatch):
        _kwargs["json"] = body.to_dict()
    elif isinstance(body, InferencePatch):
        _kwargs["json"] = body.to_dict()
    elif isinstance(body, IterativePatch):
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

    if response.status_code == 400:
        response_400 = Problem.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = Problem.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = Problem.from_dict(response.json())

        return response_403

    if response.status_code == 404:
        response_404 = Problem.from_dict(response.json())

        return response_404

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
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    body: ClusterPatch | InferencePatch | IterativePatch | WorkflowPatch,
) -> Response[Problem | WorkloadRead]:
    """Update a workload

     Change prices, weights, targets and the like; decisions follow within a second.

    `spec_version` is incremented. Agents that were trained for something else are `outdated` then.

    Args:
        workload (str): Name (or id) of the workload.
        body (ClusterPatch | InferencePatch | IterativePatch | WorkflowPatch):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | WorkloadRead]
    """

    kwargs = _get_kwargs(
        workload=workload,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    body: ClusterPatch | InferencePatch | IterativePatch | WorkflowPatch,
) -> Problem | WorkloadRead | None:
    """Update a workload

     Change prices, weights, targets and the like; decisions follow within a second.

    `spec_version` is incremented. Agents that were trained for something else are `outdated` then.

    Args:
        workload (str): Name (or id) of the workload.
        body (ClusterPatch | InferencePatch | IterativePatch | WorkflowPatch):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | WorkloadRead
    """

    return sync_detailed(
        workload=workload,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    body: ClusterPatch | InferencePatch | IterativePatch | WorkflowPatch,
) -> Response[Problem | WorkloadRead]:
    """Update a workload

     Change prices, weights, targets and the like; decisions follow within a second.

    `spec_version` is incremented. Agents that were trained for something else are `outdated` then.

    Args:
        workload (str): Name (or id) of the workload.
        body (ClusterPatch | InferencePatch | IterativePatch | WorkflowPatch):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | WorkloadRead]
    """

    kwargs = _get_kwargs(
        workload=workload,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    body: ClusterPatch | InferencePatch | IterativePatch | WorkflowPatch,
) -> Problem | WorkloadRead | None:
    """Update a workload

     Change prices, weights, targets and the like; decisions follow within a second.

    `spec_version` is incremented. Agents that were trained for something else are `outdated` then.

    Args:
        workload (str): Name (or id) of the workload.
        body (ClusterPatch | InferencePatch | IterativePatch | WorkflowPatch):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | WorkloadRead
    """

    return (
        await asyncio_detailed(
            workload=workload,
            client=client,
            body=body,
        )
    ).parsed
