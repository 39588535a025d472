from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.cluster_decision import ClusterDecision
from ...models.decision import Decision
from ...models.inference_decision import InferenceDecision
from ...models.problem import Problem
from ...models.queue_decision import QueueDecision
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    run: str | Unset = UNSET,
    workload: str | Unset = UNSET,
    iteration: int | Unset = UNSET,
    allocation: list[str] | Unset = UNSET,
    metric: list[str] | Unset = UNSET,
    feature: list[str] | Unset = UNSET,
    total: list[str] | Unset = UNSET,
    target: list[str] | Unset = UNSET,
    probability: list[str] | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["run"] = run

    params["workload"] = workload

    params["iteration"] = iteration

    json_allocation: list[str] | Unset = UNSET
    if not isinstance(allocation, Unset):
        json_allocation = allocation

    params["allocation"] = json_allocation

    json_metric: list[str] | Unset = UNSET
    if not isinstance(metric, Unset):
        json_metric = metric

    params["metric"] = json_metric

    json_feature: list[str] | Unset = UNSET
    if not isinstance(feature, Unset):
        json_feature = feature

    params["feature"] = json_feature

    json_total: list[str] | Unset = UNSET
    if not isinstance(total, Unset):
        json_total = total

    params["total"] = json_total

    json_target: list[str] | Unset = UNSET
    if not isinstance(target, Unset):
        json_target = target

    params["target"] = json_target

    json_probability: list[str] | Unset = UNSET
    if not isinstance(probability, Unset):
        json_probability = probability

    params["probability"] = json_probability

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/decision",
        "params": params,
    }

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
) -> Response[ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    run: str | Unset = UNSET,
    workload: str | Unset = UNSET,
    iteration: int | Unset = UNSET,
    allocation: list[str] | Unset = UNSET,
    metric: list[str] | Unset = UNSET,
    feature: list[str] | Unset = UNSET,
    total: list[str] | Unset = UNSET,
    target: list[str] | Unset = UNSET,
    probability: list[str] | Unset = UNSET,
) -> Response[ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem]:
    """Get a decision

     Get the decision for a run's last (or n-th) reported iteration, or for a state given in full, if the
    workload's kind supports it. Nothing is written. Either `run` or `workload` is required.

    Args:
        run (str | Unset):
        workload (str | Unset):
        iteration (int | Unset):
        allocation (list[str] | Unset):
        metric (list[str] | Unset):
        feature (list[str] | Unset):
        total (list[str] | Unset):
        target (list[str] | Unset):
        probability (list[str] | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem]
    """

    kwargs = _get_kwargs(
        run=run,
        workload=workload,
        iteration=iteration,
        allocation=allocation,
        metric=metric,
        feature=feature,
        total=total,
        target=target,
        probability=probability,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    run: str | Unset = UNSET,
    workload: str | Unset = UNSET,
    iteration: int | Unset = UNSET,
    allocation: list[str] | Unset = UNSET,
    metric: list[str] | Unset = UNSET,
    feature: list[str] | Unset = UNSET,
    total: list[str] | Unset = UNSET,
    target: list[str] | Unset = UNSET,
    probability: list[str] | Unset = UNSET,
) -> ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem | None:
    """Get a decision

     Get the decision for a run's last (or n-th) reported iteration, or for a state given in full, if the
    workload's kind supports it. Nothing is written. Either `run` or `workload` is required.

    Args:
        run (str | Unset):
        workload (str | Unset):
        iteration (int | Unset):
        allocation (list[str] | Unset):
        metric (list[str] | Unset):
        feature (list[str] | Unset):
        total (list[str] | Unset):
        target (list[str] | Unset):
        probability (list[str] | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem
    """

    return sync_detailed(
        client=client,
        run=run,
        workload=workload,
        iteration=iteration,
        allocation=allocation,
        metric=metric,
        feature=feature,
        total=total,
        target=target,
        probability=probability,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    run: str | Unset = UNSET,
    workload: str | Unset = UNSET,
    iteration: int | Unset = UNSET,
    allocation: list[str] | Unset = UNSET,
    metric: list[str] | Unset = UNSET,
    feature: list[str] | Unset = UNSET,
    total: list[str] | Unset = UNSET,
    target: list[str] | Unset = UNSET,
    probability: list[str] | Unset = UNSET,
) -> Response[ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem]:
    """Get a decision

     Get the decision for a run's last (or n-th) reported iteration, or for a state given in full, if the
    workload's kind supports it. Nothing is written. Either `run` or `workload` is required.

    Args:
        run (str | Unset):
        workload (str | Unset):
        iteration (int | Unset):
        allocation (list[str] | Unset):
        metric (list[str] | Unset):
        feature (list[str] | Unset):
        total (list[str] | Unset):
        target (list[str] | Unset):
        probability (list[str] | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem]
    """

    kwargs = _get_kwargs(
        run=run,
        workload=workload,
        iteration=iteration,
        allocation=allocation,
        metric=metric,
        feature=feature,
        total=total,
        target=target,
        probability=probability,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    run: str | Unset = UNSET,
    workload: str | Unset = UNSET,
    iteration: int | Unset = UNSET,
    allocation: list[str] | Unset = UNSET,
    metric: list[str] | Unset = UNSET,
    feature: list[str] | Unset = UNSET,
    total: list[str] | Unset = UNSET,
    target: list[str] | Unset = UNSET,
    probability: list[str] | Unset = UNSET,
) -> ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem | None:
    """Get a decision

     Get the decision for a run's last (or n-th) reported iteration, or for a state given in full, if the
    workload's kind supports it. Nothing is written. Either `run` or `workload` is required.

    Args:
        run (str | Unset):
        workload (str | Unset):
        iteration (int | Unset):
        allocation (list[str] | Unset):
        metric (list[str] | Unset):
        feature (list[str] | Unset):
        total (list[str] | Unset):
        target (list[str] | Unset):
        probability (list[str] | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ClusterDecision | Decision | InferenceDecision | QueueDecision | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            run=run,
            workload=workload,
            iteration=iteration,
            allocation=allocation,
            metric=metric,
            feature=feature,
            total=total,
            target=target,
            probability=probability,
        )
    ).parsed
