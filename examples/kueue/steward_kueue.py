"""A mutating webhook of Kubernetes: jobs that wait in a queue ask for what Steward has decided, before Kueue or Volcano
looks at them.

It serves ``POST /mutate`` (AdmissionReview v1) for ``batch/v1`` Jobs, Kueue's queues, and ``batch.volcano.sh/v1alpha1``
Jobs. What it can't say leaves a job as it is: a job must not fail to start because its advisor is away.
"""

from __future__ import annotations

import base64
import json
import logging
import os
from collections.abc import Iterator, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from steward_client import Retry, StewardError, Unreachable
from steward_client.kubernetes import Conversion, QuantityError
from steward_client.live import http_client
from steward_client.scaling.amounts import Amounts, Reader, Subject, SubjectError

NOTES = "steward/"
PATIENCE_SECONDS = 3.0  # Kubernetes waits for ten
Json = dict[str, Any]

logger = logging.getLogger("steward_kueue")


def templates(job: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each pod template of a job, by its JSON pointer: one of Kubernetes', several of Volcano's."""
    if "tasks" in job["spec"]:
        for number, task in enumerate(job["spec"]["tasks"]):
            yield f"/spec/tasks/{number}/template", task["template"]
    else:
        yield "/spec/template", job["spec"]["template"]


def patch(job: Mapping[str, Any], decided: Amounts) -> list[Json]:
    """JSON patch that sets a job's requests and limits to the decision, in the container that its annotation names.

    Raises:
        SubjectError: a resource was not decided on.
        QuantityError: the annotation can't be read.
    """
    notes = job["metadata"]["annotations"]
    conversions = [Conversion.parse(one) for one in notes.get(f"{NOTES}resources", "").split(",")]
    missing = [one.resource for one in conversions if one.resource not in decided]
    if missing:
        raise SubjectError(
            f"annotation {NOTES}resources: must be one of {', '.join(sorted(decided))}, not {missing[0]!r}"
        )
    amounts = {one.name: one.of(decided[one.resource]) for one in conversions}
    operations: list[Json] = []
    for path, template in templates(job):
        for number, container in enumerate(template["spec"]["containers"]):
            if container["name"] == notes.get(f"{NOTES}container", container["name"]):
                old = container.get("resources", {})
                new = {kind: {**old.get(kind, {}), **amounts} for kind in ("requests", "limits")}
                at = f"{path}/spec/containers/{number}/resources"
                operations.append({"op": "add", "path": at, "value": {**old, **new}})
    return operations


class Webhook:
    """Answers reviews.

    Args:
        reader: of the latest decisions.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def reviewed(self, review: Mapping[str, Any]) -> Json:
        """A review's answer: always allowed; with a patch where there is a decision, with a warning where it failed."""
        request = review["request"]
        answer: Json = {"uid": request["uid"], "allowed": True}
        notes = request["object"]["metadata"].get("annotations") or {}
        if f"{NOTES}workload" in notes:
            try:
                decided = self._reader.of(Subject(workload=notes[f"{NOTES}workload"]))
                operations = patch(request["object"], decided) if decided else []
                answer |= {
                    "patchType": "JSONPatch",
                    "patch": base64.b64encode(json.dumps(operations).encode()).decode(),
                }
            except (SubjectError, QuantityError, StewardError, Unreachable) as error:
                logger.warning("%s", error)
                answer["warnings"] = [f"steward: {error}"[:250]]
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}

    async def mutate(self, request: Request) -> JSONResponse:
        """Answer an AdmissionReview in JSON; the service is asked in a thread."""
        from anyio.to_thread import run_sync

        return JSONResponse(await run_sync(self.reviewed, await request.json()))

    def app(self) -> Starlette:
        """The ASGI application of the webhook."""
        return Starlette(routes=[Route("/mutate", self.mutate, methods=["POST"])])


def create_app() -> Starlette:
    """``uvicorn --factory steward_kueue:create_app``; the service's address is ``STEWARD_URL``."""
    http = http_client(os.environ.get("STEWARD_URL", "http://127.0.0.1:8080"))
    return Webhook(Reader(http, Retry(patience_seconds=PATIENCE_SECONDS))).app()
