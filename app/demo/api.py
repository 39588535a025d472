"""HTTP client of the demo: the calls of Steward's API that it makes."""

from typing import Any

from app.cli.remote.service import Json, RefusedError, Service

__all__ = ["Json", "RefusedError", "Steward"]


class Steward(Service):
    """Client of one Steward service; a context manager."""

    def register(self, spec: Json) -> Json:
        """Register a workload by its spec; raises RefusedError if it is rejected."""
        return self.call("POST", "/workloads", json=spec)

    def upload(self, workload: str, csv: str, name: str | None = None) -> Json:
        """Upload executions as CSV; ``name`` names the execution if the CSV doesn't; raises RefusedError."""
        query = {} if name is None else {"execution": name}
        headers = {"content-type": "text/csv"}
        return self.call("POST", f"/workloads/{workload}/samples", content=csv, headers=headers, params=query)

    def aim(self, workload: str, seconds: float) -> Json:
        """Set the deadline of a workload's runs in seconds; raises RefusedError if it is rejected."""
        return self.call("PATCH", f"/workloads/{workload}", json={"targets": {"iteration_seconds": seconds}})

    def fit(self, workload: str) -> str:
        """Request the fit of a domain model and return the job's id; raises RefusedError if it is rejected."""
        return str(self.call("POST", f"/workloads/{workload}/models", json={})["id"])

    def train(self, workload: str, **request: Any) -> str:
        """Request the training of an agent and return the job's id; raises RefusedError if it is rejected."""
        return str(self.call("POST", f"/workloads/{workload}/agents", json=request)["id"])

    def model(self, workload: str, version: int) -> Json:
        """The report of a version of the domain model; raises RefusedError if there is none."""
        return dict(self.call("GET", f"/workloads/{workload}/models/{version}")["report"])

    def agent(self, workload: str, version: int) -> Json:
        """The report of a version of the agent; raises RefusedError if there is none."""
        return dict(self.call("GET", f"/workloads/{workload}/agents/{version}")["report"])

    def start(self, workload: str) -> Json:
        """Start a live run and return its id and first decision; raises RefusedError if it is rejected."""
        return self.call("POST", "/runs", json={"workload": workload})

    def report(self, run: str, iteration: int, report: Json) -> Json:
        """Report an iteration and return the next decision; raises RefusedError if it is rejected."""
        return self.call("PUT", f"/runs/{run}/iterations/{iteration}", json=report)

    def finish(self, run: str) -> Json:
        """Finish a run; its iterations become a sample; raises RefusedError if it is rejected."""
        return self.call("PATCH", f"/runs/{run}", json={"state": "finished"})
