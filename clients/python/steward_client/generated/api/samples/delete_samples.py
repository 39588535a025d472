import datetime
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
    execution: None | str | Unset = UNSET,
    before: datetime.datetime | None | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_execution: None | str | Unset
    if isinstance(execution, Unset):
        json_execution = UNSET
    else:
        json_execution = execution
    params["execution"] = json_execution

    json_before: None | str | Unset
    if isinstance(before, Unset):
        json_before = UNSET
    elif isinstance(before, datetime.datetime):
        json_before = before.isoformat()
    else:
        json_before = before
    params["before"] = json_before

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/workloads/{workload}/samples".format(
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
    execution: None | str | Unset = UNSET,
    before: datetime.datetime | None | Unset = UNSET,
) -> Response[Any | Problem]:
    """Delete samples

     Delete one execution by name, or all stored before a given time; exactly one of the two is required.

    Args:
        workload (str): Name (or id) of the workload.
        execution (None | str | Unset): Name of one execution; for an uploaded trace, the name to
            give it.
        before (datetime.datetime | None | Unset): Delete executions stored before this time.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        execution=execution,
        before=before,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    execution: None | str | Unset = UNSET,
    before: datetime.datetime | None | Unset = UNSET,
) -> Any | Problem | None:
    """Delete samples

     Delete one execution by name, or all stored before a given time; exactly one of the two is required.

    Args:
        workload (str): Name (or id) of the workload.
        execution (None | str | Unset): Name of one execution; for an uploaded trace, the name to
            give it.
        before (datetime.datetime | None | Unset): Delete executions stored before this time.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | Problem
    """

    return sync_detailed(
        workload=workload,
        client=client,
        execution=execution,
        before=before,
    ).parsed


async def asyncio_detailed(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    execution: None | str | Unset = UNSET,
    before: datetime.datetime | None | Unset = UNSET,
) -> Response[Any | Problem]:
    """Delete samples

     Delete one execution by name, or all stored before a given time; exactly one of the two is required.

    Args:
        workload (str): Name (or id) of the workload.
        execution (None | str | Unset): Name of one execution; for an uploaded trace, the name to
            give it.
        before (datetime.datetime | None | Unset): Delete executions stored before this time.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        execution=execution,
        before=before,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    execution: None | str | Unset = UNSET,
    before: datetime.datetime | None | Unset = UNSET,
) -> Any | Problem | None:
    """Delete samples

     Delete one execution by name, or all stored before a given time; exactly one of the two is required.

    Args:
        workload (str): Name (or id) of the workload.
        execution (None | str | Unset): Name of one execution; for an uploaded trace, the name to
            give it.
        before (datetime.datetime | None | Unset): Delete executions stored before this time.

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
            execution=execution,
            before=before,
        )
    ).parsed
