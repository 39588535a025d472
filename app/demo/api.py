"""The few calls of Steward's HTTP API that the demo makes."""

from typing import Any

from app.cli.remote.service import Json, RefusedError, Service

__all__ = ["Json", "RefusedError", "Steward"]


class Steward(Service):
    """A client of one Steward service; a context manager."""

    def register(self, spec: Json) -> Json:
        """Register a workload by its spec."""
        return self.call("POST", "/workloads", json=spec)

    def upload(self, workload: str, csv: str, name: str | None = None) -> Json:
        """Upload executions as CSV; ``name`` is that of the one, where it says none itself."""
        query = {} if name is None else {"execution": name}
        headers = {"content-type": "text/csv"}
        return self.call("POST", f"/workloads/{workload}/samples", content=csv, headers=headers, params=query)

    def aim(self, workload: str, seconds: float) -> Json:
        """Set the deadline of a workload's runs."""
        return self.call("PATCH", f"/workloads/{workload}", json={"targets": {"iteration_seconds": seconds}})

    def fit(self, workload: str) -> str:
        """Have a domain model fitted; the job's id."""
        return str(self.call("POST", f"/workloads/{workload}/models", json={})["id"])

    def train(self, workload: str, **request: Any) -> str:
        """Have an agent trained; the job's id."""
        return str(self.call("POST", f"/workloads/{workload}/agents", json=request)["id"])

    def model(self, workload: str, version: int) -> Json:
        """A domain model's report."""
        return dict(self.call("GET", f"/workloads/{workload}/models/{version}")["report"])

    def agent(self, workload: str, version: int) -> Json:
        """The report of an agent."""
        return dict(self.call("GET", f"/workloads/{workload}/agents/{version}")["report"])

    def start(self, workload: str) -> Json:
        """Start a live run: its id and the first decision."""
        return self.call("POST", "/runs", json={"workload": workload})

    def report(self, run: str, iteration: int, report: Json) -> Json:
        """Report an iteration; the next decision."""
        return self.call("PUT", f"/runs/{run}/iterations/{iteration}", json=report)

    def finish(self, run: str) -> Json:
        """Finish a run: its iterations become samples."""
        return self.call("PATCH", f"/runs/{run}", json={"state": "finished"})
