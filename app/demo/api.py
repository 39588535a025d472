"""The few calls of Steward's HTTP API that the demo makes."""

import json
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import httpx

Json = dict[str, Any]
READ_SECONDS = 60.0


class RefusedError(RuntimeError):
    """The service refused a call, or a job failed; the message is the problem's title and detail."""

    def __init__(self, problem: Json) -> None:
        super().__init__(f"{problem.get('title', 'refused')}: {problem.get('detail', problem)}")


class Steward:
    """A client of one Steward service; a context manager."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(base_url=url, timeout=READ_SECONDS, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def ready(self) -> bool:
        """Whether database, broker and a worker are there."""
        try:
            return self._http.get("/readyz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def register(self, spec: Json) -> Json:
        """Register a workload."""
        return self._call("POST", "/workloads", json=spec)

    def upload(self, workload: str, csv: str) -> Json:
        """Upload executions as CSV."""
        return self._call("POST", f"/workloads/{workload}/samples", content=csv, headers={"content-type": "text/csv"})

    def fit(self, workload: str) -> str:
        """Have a domain model fitted; the job's id."""
        return str(self._call("POST", f"/workloads/{workload}/models", json={})["id"])

    def train(self, workload: str, **request: Any) -> str:
        """Have an agent trained; the job's id."""
        return str(self._call("POST", f"/workloads/{workload}/agents", json=request)["id"])

    def model(self, workload: str, version: int) -> Json:
        """A domain model's report."""
        return dict(self._call("GET", f"/workloads/{workload}/models/{version}")["report"])

    def agent(self, workload: str, version: int) -> Json:
        """An agent's report."""
        return dict(self._call("GET", f"/workloads/{workload}/agents/{version}")["report"])

    def start(self, workload: str) -> Json:
        """Start a live run: its id and the first decision."""
        return self._call("POST", "/runs", json={"workload": workload})

    def report(self, run: str, iteration: int, report: Json) -> Json:
        """Report an iteration; the next decision."""
        return self._call("PUT", f"/runs/{run}/iterations/{iteration}", json=report)

    def finish(self, run: str) -> Json:
        """Finish a run: its iterations become samples."""
        return self._call("PATCH", f"/runs/{run}", json={"state": "finished"})

    def follow(self, job: str) -> Iterator[Json]:
        """A job's server-sent events until it ends, over as many connections as that takes."""
        last = ""
        while True:
            for identifier, event in self._events(job, last):
                last = identifier
                yield event
            ended = self._call("GET", f"/jobs/{job}")
            if ended["state"] not in ("queued", "running"):
                break
            time.sleep(0.1)
        yield ended
        if ended["state"] != "succeeded":
            raise RefusedError(ended["error"] or {"title": f"the job was {ended['state']}"})

    def _events(self, job: str, after: str) -> Iterator[tuple[str, Json]]:
        headers = {"accept": "text/event-stream", **({"last-event-id": after} if after else {})}
        with self._http.stream("GET", f"/jobs/{job}/events", headers=headers) as response:
            identifier = after
            for line in response.iter_lines():
                field, _, value = line.partition(":")
                if field == "id":
                    identifier = value.strip()
                elif field == "data":
                    yield identifier, json.loads(value)

    def _call(self, method: str, path: str, **request: Any) -> Json:
        response = self._http.request(method, path, **request)
        answer: Json = response.json()
        if response.is_error:
            raise RefusedError(answer)
        return answer
