from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.model_read import ModelRead
from ...models.problem import Problem
from ...types import Response


def _get_kwargs(
    workload: str,
    version: int,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/workloads/{workload}/models/{version}".format(
            workload=quote(str(workload), safe=""),
            version=quote(str(version), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> ModelRead | Problem | None:
    if response.status_code == 200:
        response_200 = ModelRead.from_dict(response.json())

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


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[ModelRead | Problem]:
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
) -> Response[ModelRead | Problem]:
    """Read a domain model

     Get one version of the workload's domain model, with its report.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ModelRead | Problem]
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
) -> ModelRead | Problem | None:
    """Read a domain model

     Get one version of the workload's domain model, with its report.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ModelRead | Problem
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
) -> Response[ModelRead | Problem]:
    """Read a domain model

     Get one version of the workload's domain model, with its report.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ModelRead | Problem]
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
) -> ModelRead | Problem | None:
    """Read a domain model

     Get one version of the workload's domain model, with its report.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ModelRead | Problem
    """

    return (
        await asyncio_detailed(
            workload=workload,
            version=version,
            client=client,
        )
    ).parsed
