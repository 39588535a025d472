from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...models.workload_savings import WorkloadSavings
from ...types import Response


def _get_kwargs(
    workload: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/workloads/{workload}/savings".format(
            workload=quote(str(workload), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Problem | WorkloadSavings | None:
    if response.status_code == 200:
        response_200 = WorkloadSavings.from_dict(response.json())

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
) -> Response[Problem | WorkloadSavings]:
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
) -> Response[Problem | WorkloadSavings]:
    """Read savings

     Get the savings of finished runs against the largest and the best fixed allocation, by month, with
    bounds.

    Args:
        workload (str): Name (or id) of the workload.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | WorkloadSavings]
    """

    kwargs = _get_kwargs(
        workload=workload,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
) -> Problem | WorkloadSavings | None:
    """Read savings

     Get the savings of finished runs against the largest and the best fixed allocation, by month, with
    bounds.

    Args:
        workload (str): Name (or id) of the workload.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | WorkloadSavings
    """

    return sync_detailed(
        workload=workload,
        client=client,
    ).parsed


async def asyncio_detailed(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[Problem | WorkloadSavings]:
    """Read savings

     Get the savings of finished runs against the largest and the best fixed allocation, by month, with
    bounds.

    Args:
        workload (str): Name (or id) of the workload.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | WorkloadSavings]
    """

    kwargs = _get_kwargs(
        workload=workload,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
) -> Problem | WorkloadSavings | None:
    """Read savings

     Get the savings of finished runs against the largest and the best fixed allocation, by month, with
    bounds.

    Args:
        workload (str): Name (or id) of the workload.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | WorkloadSavings
    """

    return (
        await asyncio_detailed(
            workload=workload,
            client=client,
        )
    ).parsed
