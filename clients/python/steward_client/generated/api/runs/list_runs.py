from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.list_runs_outcome_type_0_item import ListRunsOutcomeType0Item
from ...models.list_runs_sort import ListRunsSort
from ...models.list_runs_state_type_0 import ListRunsStateType0
from ...models.page_run_listed import PageRunListed
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    workload: None | str | Unset = UNSET,
    state: ListRunsStateType0 | None | Unset = UNSET,
    outcome: list[ListRunsOutcomeType0Item] | None | Unset = UNSET,
    search: None | str | Unset = UNSET,
    sort: ListRunsSort | Unset = ListRunsSort.VALUE_0,
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
    elif isinstance(state, ListRunsStateType0):
        json_state = state.value
    else:
        json_state = state
    params["state"] = json_state

    json_outcome: list[str] | None | Unset
    if isinstance(outcome, Unset):
        json_outcome = UNSET
    elif isinstance(outcome, list):
        json_outcome = []
        for outcome_type_0_item_data in outcome:
            outcome_type_0_item = outcome_type_0_item_data.value
            json_outcome.append(outcome_type_0_item)

    else:
        json_outcome = outcome
    params["outcome"] = json_outcome

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
        "url": "/runs",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> PageRunListed | Problem | None:
    if response.status_code == 200:
        response_200 = PageRunListed.from_dict(response.json())

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
) -> Response[PageRunListed | Problem]:
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
    state: ListRunsStateType0 | None | Unset = UNSET,
    outcome: list[ListRunsOutcomeType0Item] | None | Unset = UNSET,
    search: None | str | Unset = UNSET,
    sort: ListRunsSort | Unset = ListRunsSort.VALUE_0,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> Response[PageRunListed | Problem]:
    """List runs

     List runs with their last decisions, newest first unless sorted otherwise.

    Args:
        workload (None | str | Unset): Filter by workload.
        state (ListRunsStateType0 | None | Unset): Filter by state.
        outcome (list[ListRunsOutcomeType0Item] | None | Unset): Filter by outcome.
        search (None | str | Unset): First characters of the run's id (at least 4) or of its
            workload's name.
        sort (ListRunsSort | Unset): Order; `-`: the latest, longest, dearest or gravest first. By
            another column than `started`, the newest 500 matching runs are sorted; those without a
            cost come last. Default: ListRunsSort.VALUE_0.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PageRunListed | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        state=state,
        outcome=outcome,
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
    state: ListRunsStateType0 | None | Unset = UNSET,
    outcome: list[ListRunsOutcomeType0Item] | None | Unset = UNSET,
    search: None | str | Unset = UNSET,
    sort: ListRunsSort | Unset = ListRunsSort.VALUE_0,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> PageRunListed | Problem | None:
    """List runs

     List runs with their last decisions, newest first unless sorted otherwise.

    Args:
        workload (None | str | Unset): Filter by workload.
        state (ListRunsStateType0 | None | Unset): Filter by state.
        outcome (list[ListRunsOutcomeType0Item] | None | Unset): Filter by outcome.
        search (None | str | Unset): First characters of the run's id (at least 4) or of its
            workload's name.
        sort (ListRunsSort | Unset): Order; `-`: the latest, longest, dearest or gravest first. By
            another column than `started`, the newest 500 matching runs are sorted; those without a
            cost come last. Default: ListRunsSort.VALUE_0.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PageRunListed | Problem
    """

    return sync_detailed(
        client=client,
        workload=workload,
        state=state,
        outcome=outcome,
        search=search,
        sort=sort,
        limit=limit,
        cursor=cursor,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    workload: None | str | Unset = UNSET,
    state: ListRunsStateType0 | None | Unset = UNSET,
    outcome: list[ListRunsOutcomeType0Item] | None | Unset = UNSET,
    search: None | str | Unset = UNSET,
    sort: ListRunsSort | Unset = ListRunsSort.VALUE_0,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> Response[PageRunListed | Problem]:
    """List runs

     List runs with their last decisions, newest first unless sorted otherwise.

    Args:
        workload (None | str | Unset): Filter by workload.
        state (ListRunsStateType0 | None | Unset): Filter by state.
        outcome (list[ListRunsOutcomeType0Item] | None | Unset): Filter by outcome.
        search (None | str | Unset): First characters of the run's id (at least 4) or of its
            workload's name.
        sort (ListRunsSort | Unset): Order; `-`: the latest, longest, dearest or gravest first. By
            another column than `started`, the newest 500 matching runs are sorted; those without a
            cost come last. Default: ListRunsSort.VALUE_0.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PageRunListed | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        state=state,
        outcome=outcome,
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
    state: ListRunsStateType0 | None | Unset = UNSET,
    outcome: list[ListRunsOutcomeType0Item] | None | Unset = UNSET,
    search: None | str | Unset = UNSET,
    sort: ListRunsSort | Unset = ListRunsSort.VALUE_0,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> PageRunListed | Problem | None:
    """List runs

     List runs with their last decisions, newest first unless sorted otherwise.

    Args:
        workload (None | str | Unset): Filter by workload.
        state (ListRunsStateType0 | None | Unset): Filter by state.
        outcome (list[ListRunsOutcomeType0Item] | None | Unset): Filter by outcome.
        search (None | str | Unset): First characters of the run's id (at least 4) or of its
            workload's name.
        sort (ListRunsSort | Unset): Order; `-`: the latest, longest, dearest or gravest first. By
            another column than `started`, the newest 500 matching runs are sorted; those without a
            cost come last. Default: ListRunsSort.VALUE_0.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PageRunListed | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            workload=workload,
            state=state,
            outcome=outcome,
            search=search,
            sort=sort,
            limit=limit,
            cursor=cursor,
        )
    ).parsed
