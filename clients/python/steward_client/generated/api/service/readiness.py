from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...models.readiness import Readiness
from ...models.readiness_exclude_item import ReadinessExcludeItem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    exclude: list[ReadinessExcludeItem] | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_exclude: list[str] | Unset = UNSET
    if not isinstance(exclude, Unset):
        json_exclude = []
        for exclude_item_data in exclude:
            exclude_item = exclude_item_data.value
            json_exclude.append(exclude_item)

    params["exclude"] = json_exclude

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/readyz",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | Problem | Readiness | None:
    if response.status_code == 200:
        response_200 = response.json()
        return response_200

    if response.status_code == 421:
        response_421 = Problem.from_dict(response.json())

        return response_421

    if response.status_code == 422:
        response_422 = Problem.from_dict(response.json())

        return response_422

    if response.status_code == 503:
        response_503 = Readiness.from_dict(response.json())

        return response_503

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Any | Problem | Readiness]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    exclude: list[ReadinessExcludeItem] | Unset = UNSET,
) -> Response[Any | Problem | Readiness]:
    """Check readiness

     Check the database, the broker and the workers, with results at most 250 ms old; 503 if a check
    fails.

    Args:
        exclude (list[ReadinessExcludeItem] | Unset): Checks to skip; decisions need neither
            `broker` nor `worker`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | Problem | Readiness]
    """

    kwargs = _get_kwargs(
        exclude=exclude,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    exclude: list[ReadinessExcludeItem] | Unset = UNSET,
) -> Any | Problem | Readiness | None:
    """Check readiness

     Check the database, the broker and the workers, with results at most 250 ms old; 503 if a check
    fails.

    Args:
        exclude (list[ReadinessExcludeItem] | Unset): Checks to skip; decisions need neither
            `broker` nor `worker`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | Problem | Readiness
    """

    return sync_detailed(
        client=client,
        exclude=exclude,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    exclude: list[ReadinessExcludeItem] | Unset = UNSET,
) -> Response[Any | Problem | Readiness]:
    """Check readiness

     Check the database, the broker and the workers, with results at most 250 ms old; 503 if a check
    fails.

    Args:
        exclude (list[ReadinessExcludeItem] | Unset): Checks to skip; decisions need neither
            `broker` nor `worker`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | Problem | Readiness]
    """

    kwargs = _get_kwargs(
        exclude=exclude,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    exclude: list[ReadinessExcludeItem] | Unset = UNSET,
) -> Any | Problem | Readiness | None:
    """Check readiness

     Check the database, the broker and the workers, with results at most 250 ms old; 503 if a check
    fails.

    Args:
        exclude (list[ReadinessExcludeItem] | Unset): Checks to skip; decisions need neither
            `broker` nor `worker`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | Problem | Readiness
    """

    return (
        await asyncio_detailed(
            client=client,
            exclude=exclude,
        )
    ).parsed
