from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    workload: str,
    *,
    force: bool | Unset = False,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["force"] = force

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/workloads/{workload}".format(
            workload=quote(str(workload), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Any | Problem | None:
    if response.status_code == 204:
        response_204 = cast(Any, None)
        return response_204

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


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Any | Problem]:
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
    force: bool | Unset = False,
) -> Response[Any | Problem]:
    """Delete a workload

     Delete a workload and everything in it: samples, models, agents, jobs and runs.

    Args:
        workload (str): Name (or id) of the workload.
        force (bool | Unset): Delete even if runs are active or jobs have not ended. Default:
            False.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        force=force,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    force: bool | Unset = False,
) -> Any | Problem | None:
    """Delete a workload

     Delete a workload and everything in it: samples, models, agents, jobs and runs.

    Args:
        workload (str): Name (or id) of the workload.
        force (bool | Unset): Delete even if runs are active or jobs have not ended. Default:
            False.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | Problem
    """

    return sync_detailed(
        workload=workload,
        client=client,
        force=force,
    ).parsed


async def asyncio_detailed(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    force: bool | Unset = False,
) -> Response[Any | Problem]:
    """Delete a workload

     Delete a workload and everything in it: samples, models, agents, jobs and runs.

    Args:
        workload (str): Name (or id) of the workload.
        force (bool | Unset): Delete even if runs are active or jobs have not ended. Default:
            False.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        force=force,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    force: bool | Unset = False,
) -> Any | Problem | None:
    """Delete a workload

     Delete a workload and everything in it: samples, models, agents, jobs and runs.

    Args:
        workload (str): Name (or id) of the workload.
        force (bool | Unset): Delete even if runs are active or jobs have not ended. Default:
            False.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | Problem
    """

    return (
        await asyncio_detailed(
            workload=workload,
            client=client,
            force=force,
        )
    ).parsed
