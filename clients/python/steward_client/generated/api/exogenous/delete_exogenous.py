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
    series: str,
    *,
    before: datetime.datetime | None | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

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
        "url": "/workloads/{workload}/exogenous/{series}".format(
            workload=quote(str(workload), safe=""),
            series=quote(str(series), safe=""),
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
    series: str,
    *,
    client: AuthenticatedClient | Client,
    before: datetime.datetime | None | Unset = UNSET,
) -> Response[Any | Problem]:
    """Delete a series

     Delete a series with all its issues, or only its rows before a given time.

    Args:
        workload (str): Name (or id) of the workload.
        series (str): Name of the series.
        before (datetime.datetime | None | Unset): Delete only rows for times before this one.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        series=series,
        before=before,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    workload: str,
    series: str,
    *,
    client: AuthenticatedClient | Client,
    before: datetime.datetime | None | Unset = UNSET,
) -> Any | Problem | None:
    """Delete a series

     Delete a series with all its issues, or only its rows before a given time.

    Args:
        workload (str): Name (or id) of the workload.
        series (str): Name of the series.
        before (datetime.datetime | None | Unset): Delete only rows for times before this one.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | Problem
    """

    return sync_detailed(
        workload=workload,
        series=series,
        client=client,
        before=before,
    ).parsed


async def asyncio_detailed(
    workload: str,
    series: str,
    *,
    client: AuthenticatedClient | Client,
    before: datetime.datetime | None | Unset = UNSET,
) -> Response[Any | Problem]:
    """Delete a series

     Delete a series with all its issues, or only its rows before a given time.

    Args:
        workload (str): Name (or id) of the workload.
        series (str): Name of the series.
        before (datetime.datetime | None | Unset): Delete only rows for times before this one.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        series=series,
        before=before,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    workload: str,
    series: str,
    *,
    client: AuthenticatedClient | Client,
    before: datetime.datetime | None | Unset = UNSET,
) -> Any | Problem | None:
    """Delete a series

     Delete a series with all its issues, or only its rows before a given time.

    Args:
        workload (str): Name (or id) of the workload.
        series (str): Name of the series.
        before (datetime.datetime | None | Unset): Delete only rows for times before this one.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | Problem
    """

    return (
        await asyncio_detailed(
            workload=workload,
            series=series,
            client=client,
            before=before,
        )
    ).parsed
