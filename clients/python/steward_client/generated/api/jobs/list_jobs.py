from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.list_jobs_sort import ListJobsSort
from ...models.list_jobs_state_type_0 import ListJobsStateType0
from ...models.list_jobs_type_type_0 import ListJobsTypeType0
from ...models.page_job_read import PageJobRead
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    workload: None | str | Unset = UNSET,
    state: ListJobsStateType0 | None | Unset = UNSET,
    type_: ListJobsTypeType0 | None | Unset = UNSET,
    search: None | str | Unset = UNSET,
    sort: ListJobsSort | Unset = ListJobsSort.VALUE_0,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_workload: None | str | Unset
    if isinstance(workload, Unset):
        json_workload = UNSET
    else:
        json_workload = workload
    params["workload"] = json_workload

    json_state: None | str | Unset
    if isinstance(state, Unset):
        json_state = UNSET
    elif isinstance(state, ListJobsStateType0):
        json_state = state.value
    else:
        json_state = state
    params["state"] = json_state

    json_type_: None | str | Unset
    if isinstance(type_, Unset):
        json_type_ = UNSET
    elif isinstance(type_, ListJobsTypeType0):
        json_type_ = type_.value
    else:
        json_type_ = type_
    params["type"] = json_type_

    json_search: None | str | Unset
    if isinstance(search, Unset):
        json_search = UNSET
    else:
        json_search = search
    params["search"] = json_search

    json_sort: str | Unset = UNSET
    if not isinstance(sort, Unset):
        json_sort = sort.value

    params["sort"] = json_sort

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
        "url": "/jobs",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> PageJobRead | Problem | None:
    if response.status_code == 200:
        response_200 = PageJobRead.from_dict(response.json())

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
) -> Response[PageJobRead | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    workload: None | str | Unset = UNSET,
    state: ListJobsStateType0 | None | Unset = UNSET,
    type_: ListJobsTypeType0 | None | Unset = UNSET,
    search: None | str | Unset = UNSET,
    sort: ListJobsSort | Unset = ListJobsSort.VALUE_0,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> Response[PageJobRead | Problem]:
    """List jobs

     List jobs, newest first unless sorted otherwise.

    Args:
        workload (None | str | Unset): Filter by workload.
        state (ListJobsStateType0 | None | Unset): Filter by state.
        type_ (ListJobsTypeType0 | None | Unset): Filter by type.
        search (None | str | Unset): First characters of the job's id (at least 4) or of its
            workload's name.
        sort (ListJobsSort | Unset): Order: `-started` newest first, `started` oldest first.
            Default: ListJobsSort.VALUE_0.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PageJobRead | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        state=state,
        type_=type_,
        search=search,
        sort=sort,
        limit=limit,
        cursor=cursor,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    workload: None | str | Unset = UNSET,
    state: ListJobsStateType0 | None | Unset = UNSET,
    type_: ListJobsTypeType0 | None | Unset = UNSET,
    search: None | str | Unset = UNSET,
    sort: ListJobsSort | Unset = ListJobsSort.VALUE_0,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> PageJobRead | Problem | None:
    """List jobs

     List jobs, newest first unless sorted otherwise.

    Args:
        workload (None | str | Unset): Filter by workload.
        state (ListJobsStateType0 | None | Unset): Filter by state.
        type_ (ListJobsTypeType0 | None | Unset): Filter by type.
        search (None | str | Unset): First characters of the job's id (at least 4) or of its
            workload's name.
        sort (ListJobsSort | Unset): Order: `-started` newest first, `started` oldest first.
            Default: ListJobsSort.VALUE_0.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PageJobRead | Problem
    """

    return sync_detailed(
        client=client,
        workload=workload,
        state=state,
        type_=type_,
        search=search,
        sort=sort,
        limit=limit,
        cursor=cursor,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    workload: None | str | Unset = UNSET,
    state: ListJobsStateType0 | None | Unset = UNSET,
    type_: ListJobsTypeType0 | None | Unset = UNSET,
    search: None | str | Unset = UNSET,
    sort: ListJobsSort | Unset = ListJobsSort.VALUE_0,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> Response[PageJobRead | Problem]:
    """List jobs

     List jobs, newest first unless sorted otherwise.

    Args:
        workload (None | str | Unset): Filter by workload.
        state (ListJobsStateType0 | None | Unset): Filter by state.
        type_ (ListJobsTypeType0 | None | Unset): Filter by type.
        search (None | str | Unset): First characters of the job's id (at least 4) or of its
            workload's name.
        sort (ListJobsSort | Unset): Order: `-started` newest first, `started` oldest first.
            Default: ListJobsSort.VALUE_0.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PageJobRead | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        state=state,
        type_=type_,
        search=search,
        sort=sort,
        limit=limit,
        cursor=cursor,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    workload: None | str | Unset = UNSET,
    state: ListJobsStateType0 | None | Unset = UNSET,
    type_: ListJobsTypeType0 | None | Unset = UNSET,
    search: None | str | Unset = UNSET,
    sort: ListJobsSort | Unset = ListJobsSort.VALUE_0,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> PageJobRead | Problem | None:
    """List jobs

     List jobs, newest first unless sorted otherwise.

    Args:
        workload (None | str | Unset): Filter by workload.
        state (ListJobsStateType0 | None | Unset): Filter by state.
        type_ (ListJobsTypeType0 | None | Unset): Filter by type.
        search (None | str | Unset): First characters of the job's id (at least 4) or of its
            workload's name.
        sort (ListJobsSort | Unset): Order: `-started` newest first, `started` oldest first.
            Default: ListJobsSort.VALUE_0.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PageJobRead | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            workload=workload,
            state=state,
            type_=type_,
            search=search,
            sort=sort,
            limit=limit,
            cursor=cursor,
        )
    ).parsed
