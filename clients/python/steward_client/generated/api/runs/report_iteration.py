from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.cluster_decision import ClusterDecision
from ...models.cluster_report import ClusterReport
from ...models.decision import Decision
from ...models.inference_decision import InferenceDecision
from ...models.inference_report import InferenceReport
from ...models.iteration_report import IterationReport
from ...models.problem import Problem
from ...models.queue_decision import QueueDecision
from ...models.queue_report import QueueReport
from ...types import Response


def _get_kwargs(
    run: str,
    iteration: int,
    *,
    body: ClusterReport | InferenceReport | IterationReport | QueueReport,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/runs/{run}/iterations/{iteration}".format(
            run=quote(str(run), safe=""),
            iteration=quote(str(iteration), safe=""),
        ),
    }

    if isinstance(body, ClusterReport):
        _kwargs["json"] = body.to_dict()
    elif isinstance(body, InferenceReport):
        _kwargs["json"] = body.to_dict()
    elif isinstance(body, IterationReport):
        _kwargs["json"] = body.to_dict()
    else:
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem | None:
    if response.status_code == 200:

        def _parse_response_200(data: object) -> ClusterDecision | Decision | InferenceDecision | QueueDecision:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                response_200_type_0 = ClusterDecision.from_dict(data)

                return response_200_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                response_200_type_1 = InferenceDecision.from_dict(data)

                return response_200_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                response_200_type_2 = Decision.from_dict(data)

                return response_200_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            response_200_type_3 = QueueDecision.from_dict(data)

            return response_200_type_3

        response_200 = _parse_response_200(response.json())

        return response_200

    if response.status_code == 201:

        def _parse_response_201(data: object) -> ClusterDecision | Decision | InferenceDecision | QueueDecision:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                response_201_type_0 = ClusterDecision.from_dict(data)

                return response_201_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                response_201_type_1 = InferenceDecision.from_dict(data)

                return response_201_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                response_201_type_2 = Decision.from_dict(data)

                return response_201_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            response_201_type_3 = QueueDecision.from_dict(data)

            return response_201_type_3

        response_201 = _parse_response_201(response.json())

        return response_201

    if response.status_code == 400:
        response_400 = Problem.from_dict(response.json())

        return response_400

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

    if response.status_code == 413:
        response_413 = Problem.from_dict(response.json())

        return response_413

    if response.status_code == 415:
        response_415 = Problem.from_dict(response.json())

        return response_415

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
) -> Response[ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    run: str,
    iteration: int,
    *,
    client: AuthenticatedClient | Client,
    body: ClusterReport | InferenceReport | IterationReport | QueueReport,
) -> Response[ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem]:
    """Report an iteration and get the next step

     Report an iteration, as defined by the workload's kind: what it used and measured, or the queue, in
    full or as changes. The next step is returned once both are on disk. Repeating the same report
    returns the same step.

    Args:
        run (str):
        iteration (int):
        body (ClusterReport | InferenceReport | IterationReport | QueueReport):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem]
    """

    kwargs = _get_kwargs(
        run=run,
        iteration=iteration,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    run: str,
    iteration: int,
    *,
    client: AuthenticatedClient | Client,
    body: ClusterReport | InferenceReport | IterationReport | QueueReport,
) -> ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem | None:
    """Report an iteration and get the next step

     Report an iteration, as defined by the workload's kind: what it used and measured, or the queue, in
    full or as changes. The next step is returned once both are on disk. Repeating the same report
    returns the same step.

    Args:
        run (str):
        iteration (int):
        body (ClusterReport | InferenceReport | IterationReport | QueueReport):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem
    """

    return sync_detailed(
        run=run,
        iteration=iteration,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    run: str,
    iteration: int,
    *,
    client: AuthenticatedClient | Client,
    body: ClusterReport | InferenceReport | IterationReport | QueueReport,
) -> Response[ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem]:
    """Report an iteration and get the next step

     Report an iteration, as defined by the workload's kind: what it used and measured, or the queue, in
    full or as changes. The next step is returned once both are on disk. Repeating the same report
    returns the same step.

    Args:
        run (str):
        iteration (int):
        body (ClusterReport | InferenceReport | IterationReport | QueueReport):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem]
    """

    kwargs = _get_kwargs(
        run=run,
        iteration=iteration,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    run: str,
    iteration: int,
    *,
    client: AuthenticatedClient | Client,
    body: ClusterReport | InferenceReport | IterationReport | QueueReport,
) -> ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem | None:
    """Report an iteration and get the next step

     Report an iteration, as defined by the workload's kind: what it used and measured, or the queue, in
    full or as changes. The next step is returned once both are on disk. Repeating the same report
    returns the same step.

    Args:
        run (str):
        iteration (int):
        body (ClusterReport | InferenceReport | IterationReport | QueueReport):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem
    """

    return (
        await asyncio_detailed(
            run=run,
            iteration=iteration,
            client=client,
            body=body,
        )
    ).parsed
