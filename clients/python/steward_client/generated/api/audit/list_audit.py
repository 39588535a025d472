from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.page_audit_read import PageAuditRead
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    action: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_action: None | str | Unset
    if isinstance(action, Unset):
        json_action = UNSET
    else:
        json_action = action
    params["action"] = json_action

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
        "url": "/audit",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> PageAuditRead | Problem | None:
    if response.status_code == 200:
        response_200 = PageAuditRead.from_dict(response.json())

        return response_200

    if response.status_code == 401:
        response_401 = Problem.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = Problem.from_dict(response.json())

        return response_403

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
) -> Response[PageAuditRead | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    action: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> Response[PageAuditRead | Problem]:
    """List audit records

     List who created, changed, promoted, started, ended or deleted what, newest first.

    Args:
        action (None | str | Unset): Filter by action: `key.create`, or a prefix such as `key`.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PageAuditRead | Problem]
    """

    kwargs = _get_kwargs(
        action=action,
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
    action: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> PageAuditRead | Problem | None:
    """List audit records

     List who created, changed, promoted, started, ended or deleted what, newest first.

    Args:
        action (None | str | Unset): Filter by action: `key.create`, or a prefix such as `key`.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PageAuditRead | Problem
    """

    return sync_detailed(
        client=client,
        action=action,
        limit=limit,
        cursor=cursor,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    action: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> Response[PageAuditRead | Problem]:
    """List audit records

     List who created, changed, promoted, started, ended or deleted what, newest first.

    Args:
        action (None | str | Unset): Filter by action: `key.create`, or a prefix such as `key`.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PageAuditRead | Problem]
    """

    kwargs = _get_kwargs(
        action=action,
        limit=limit,
        cursor=cursor,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    action: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    cursor: None | str | Unset = UNSET,
) -> PageAuditRead | Problem | None:
    """List audit records

     List who created, changed, promoted, started, ended or deleted what, newest first.

    Args:
        action (None | str | Unset): Filter by action: `key.create`, or a prefix such as `key`.
        limit (int | Unset): Maximum items per page. Default: 50.
        cursor (None | str | Unset): Cursor taken from a `next` link.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PageAuditRead | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            action=action,
            limit=limit,
            cursor=cursor,
        )
    ).parsed
