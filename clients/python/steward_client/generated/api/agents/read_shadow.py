from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...models.shadow_read import ShadowRead
from ...types import Response


def _get_kwargs(
    workload: str,
    version: int,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/workloads/{workload}/agents/{version}/shadow".format(
            workload=quote(str(workload), safe=""),
            version=quote(str(version), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | ShadowRead | None:
    if response.status_code == 200:
        response_200 = ShadowRead.from_dict(response.json())

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
) -> Response[Problem | ShadowRead]:
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
) -> Response[Problem | ShadowRead]:
    """Read a shadow's decisions

     Get this version's decisions in the runs that it shadowed, and their regret under the domain model.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ShadowRead]
    """

    kwargs = _get_kwargs(
        workload=workload,
        version=version,
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
) -> Problem | ShadowRead | None:
    """Read a shadow's decisions

     Get this version's decisions in the runs that it shadowed, and their regret under the domain model.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ShadowRead
    """

    return sync_detailed(
        workload=workload,
        version=version,
        client=client,
    ).parsed


async def asyncio_detailed(
    workload: str,
    version: int,
    *,
    client: AuthenticatedClient | Client,
) -> Response[Problem | ShadowRead]:
    """Read a shadow's decisions

     Get this version's decisions in the runs that it shadowed, and their regret under the domain model.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ShadowRead]
    """

    kwargs = _get_kwargs(
        workload=workload,
        version=version,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    workload: str,
    version: int,
    *,
    client: AuthenticatedClient | Client,
) -> Problem | ShadowRead | None:
    """Read a shadow's decisions

     Get this version's decisions in the runs that it shadowed, and their regret under the domain model.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ShadowRead
    """

    return (
        await asyncio_detailed(
            workload=workload,
            version=version,
            client=client,
        )
    ).parsed
