import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.page_exogenous_read import PageExogenousRead
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    workload: str,
    series: str,
    *,
    since: datetime.datetime | None | Unset = UNSET,
    until: datetime.datetime | None | Unset = UNSET,
    issued_at: datetime.datetime | None | Unset = UNSET,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_since: None | str | Unset
    if isinstance(since, Unset):
        json_since = UNSET
    elif isinstance(since, datetime.datetime):
        json_since = since.isoformat()
    else:
        json_since = since
    params["since"] = json_since

    json_until: None | str | Unset
    if isinstance(until, Unset):
        json_until = UNSET
    elif isinstance(until, datetime.datetime):
        json_until = until.isoformat()
    else:
        json_until = until
    params["until"] = json_until

    json_issued_at: None | str | Unset
    if isinstance(issued_at, Unset):
        json_issued_at = UNSET
    elif isinstance(issued_at, datetime.datetime):
        json_issued_at = issued_at.isoformat()
    else:
        json_issued_at = issued_at
    params["issued_at"] = json_issued_at

    params["limit"] = limit

    json_cursor: None | str | Unset
    if isinstance(cursor, Unset):
        json_cursor = UNSET
    else:
        json_cursor = cursor
    params["cursor"] = json_cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/workloads/{workload}/exogenous/{series}".format(
            workload=quote(str(workload), safe=""),
            series=quote(str(series), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> PageExogenousRead | Problem | None:
    if response.status_code == 200:
        response_200 = PageExogenousRead.from_dict(response.json())

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
) -> Response[PageExogenousRead | Problem]:
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
    since: datetime.datetime | None | Unset = UNSET,
    until: datetime.datetime | None | Unset = UNSET,
    issued_at: datetime.datetime | None | Unset = UNSET,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> Response[PageExogenousRead | Problem]:
    """Read a series

     List the rows of a series by time; for each time, the row issued last.

    Args:
        workload (str): Name (or id) of the workload.
        series (str): Name of the series.
        since (datetime.datetime | None | Unset): Start of the time range, inclusive.
        until (datetime.datetime | None | Unset): End of the time range, exclusive.
        issued_at (datetime.datetime | None | Unset): Rows of this issue; default: the newest for
            each time.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PageExogenousRead | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        series=series,
        since=since,
        until=until,
        issued_at=issued_at,
        limit=limit,
        cursor=cursor,
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
    since: datetime.datetime | None | Unset = UNSET,
    until: datetime.datetime | None | Unset = UNSET,
    issued_at: datetime.datetime | None | Unset = UNSET,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> PageExogenousRead | Problem | None:
    """Read a series

     List the rows of a series by time; for each time, the row issued last.

    Args:
        workload (str): Name (or id) of the workload.
        series (str): Name of the series.
        since (datetime.datetime | None | Unset): Start of the time range, inclusive.
        until (datetime.datetime | None | Unset): End of the time range, exclusive.
        issued_at (datetime.datetime | None | Unset): Rows of this issue; default: the newest for
            each time.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PageExogenousRead | Problem
    """

    return sync_detailed(
        workload=workload,
        series=series,
        client=client,
        since=since,
        until=until,
        issued_at=issued_at,
        limit=limit,
        cursor=cursor,
    ).parsed


async def asyncio_detailed(
    workload: str,
    series: str,
    *,
    client: AuthenticatedClient | Client,
    since: datetime.datetime | None | Unset = UNSET,
    until: datetime.datetime | None | Unset = UNSET,
    issued_at: datetime.datetime | None | Unset = UNSET,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> Response[PageExogenousRead | Problem]:
    """Read a series

     List the rows of a series by time; for each time, the row issued last.

    Args:
        workload (str): Name (or id) of the workload.
        series (str): Name of the series.
        since (datetime.datetime | None | Unset): Start of the time range, inclusive.
        until (datetime.datetime | None | Unset): End of the time range, exclusive.
        issued_at (datetime.datetime | None | Unset): Rows of this issue; default: the newest for
            each time.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PageExogenousRead | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        series=series,
        since=since,
        until=until,
        issued_at=issued_at,
        limit=limit,
        cursor=cursor,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    workload: str,
    series: str,
    *,
    client: AuthenticatedClient | Client,
    since: datetime.datetime | None | Unset = UNSET,
    until: datetime.datetime | None | Unset = UNSET,
    issued_at: datetime.datetime | None | Unset = UNSET,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> PageExogenousRead | Problem | None:
    """Read a series

     List the rows of a series by time; for each time, the row issued last.

    Args:
        workload (str): Name (or id) of the workload.
        series (str): Name of the series.
        since (datetime.datetime | None | Unset): Start of the time range, inclusive.
        until (datetime.datetime | None | Unset): End of the time range, exclusive.
        issued_at (datetime.datetime | None | Unset): Rows of this issue; default: the newest for
            each time.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PageExogenousRead | Problem
    """

    return (
        await asyncio_detailed(
            workload=workload,
            series=series,
            client=client,
            since=since,
            until=until,
            issued_at=issued_at,
            limit=limit,
            cursor=cursor,
        )
    ).parsed
