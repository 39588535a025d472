"""Ray jobs, through the REST API of Ray's dashboard; an allocation is a resource request to Ray's autoscaler.

``request_resources`` is called on the cluster by a one-line job, so that Ray need not be installed here. The job itself
must use the available resources, as Ray Tune, Ray Data and elastic trainers do. If the launcher is killed, job and
request remain until the same run is started again (see `leftovers`); ``ray job list`` and ``ray job stop`` end the job.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import shlex
import time
from collections.abc import Iterable, Mapping
from typing import Any

import httpx
from typing_extensions import override

from steward_client.trust import ssl_context

from .contract import UNITS, ActuatorError, Allocation, Launch, Range, Settable, Sink, Unavailable
from .leftovers import Leaving, Leftover, launcher
from .remote import KILLED, PARTING_SECONDS, Remote

ADDRESS = "http://127.0.0.1:8265"
TIMEOUT_SECONDS, TAIL_SECONDS, TAIL_SHARE = 30.0, 0.2, 0.05
HOW = "ray.autoscaler.sdk.request_resources"
REQUEST = (
    "import json, os, ray; from ray.autoscaler.sdk import request_resources; ray.init(address='auto'); "
    "request_resources(bundles=json.loads(os.environ['STEWARD_BUNDLES']))"
)
UNITS_OF_RAY = {"cpu": ("CPU", 0.01), "gpus": ("GPU", 1.0), "memory": ("memory", float(1 << 20))}
PIECES = {"CPU": 1.0, "GPU": 1.0, "memory": float(1 << 30)}
MOST_BUNDLES = 10_000
ROUNDING = 1e-6
GOING_ON = ("PENDING", "RUNNING")


class RayJob(Remote, Leaving):
    """Runs a command as a Ray job.

    Args:
        wanted: the resources to be set: ``workers`` (bundles), ``cpu`` (percent of a core), ``gpus``, ``memory`` (MiB).
            With ``workers`` the others are divided among the bundles, else requested in bundles of one core, GPU or
            GiB.
        address: URL of Ray's dashboard; empty: ``RAY_API_SERVER_ADDRESS``, else port 8265 of this machine.
        python: the Python command on the cluster.

    Raises:
        Unavailable: Ray doesn't respond.
        CannotSet: another resource is wanted, or not in that range.
    """

    name = "ray"

    def __init__(self, wanted: Mapping[str, Range], address: str = "", python: str = "python") -> None:
        address = address or os.environ.get("RAY_API_SERVER_ADDRESS", "") or ADDRESS
        settable = {name: Settable(UNITS[name], 1.0, None, HOW) for name in ("workers", "cpu", "gpus", "memory")}
        super().__init__(settable, wanted)
        self._http = httpx.Client(base_url=address, timeout=TIMEOUT_SECONDS, verify=ssl_context())
        self._address = address
        self._python, self._job = python, f"steward-{secrets.token_hex(8)}"
        try:
            self._call("GET", "/api/version")
        except ActuatorError:
            self._http.close()
            raise

    def _begin(self, launch: Launch, allocation: Allocation) -> None:
        self._request(allocation)
        try:
            self._submit(self._job, shlex.join(launch.command), launch.environment, _labels(launch.name))
        except ActuatorError:
            self._request({})
            raise

    def _set(self, allocation: Allocation) -> str:
        self._request({**self._current, **allocation})
        return self._waits(allocation)

    def _waits(self, allocation: Allocation) -> str:
        """Which of the requested resources the cluster lacks, by the autoscaler's report; empty if there is none."""
        try:
            told = self._call("GET", "/api/cluster_status").json()["data"]["clusterStatus"]["loadMetricsReport"]
            totals = {name: float(total) for name, (_, total) in told["usage"].items()}
        except (ActuatorError, LookupError, TypeError, ValueError):  # a cluster without an autoscaler, or an older one
            return ""
        asked: dict[str, float] = {}
        for bundle in bundles({**self._current, **allocation}):
            for name, amount in bundle.items():
                asked[name] = asked.get(name, 0.0) + amount
        lacking = [
            f"{name} {totals.get(name, 0.0):g} of {amount:g}"
            for name, amount in asked.items()
            if totals.get(name, 0.0) < amount * (1 - ROUNDING)
        ]
        return f"Insufficient resources: the cluster has {', '.join(lacking)}" if lacking else ""

    def _withdraw(self, allocation: Allocation) -> None:  # noqa: ARG002
        self._request(self._current)

    def _request(self, allocation: Allocation) -> None:
        """Send a request to the autoscaler and wait for its acceptance; raises ActuatorError after 30 s."""
        job = f"steward-request-{secrets.token_hex(8)}"
        command = shlex.join([self._python, "-c", REQUEST])
        self._submit(job, command, {"STEWARD_BUNDLES": json.dumps(bundles(allocation))}, {})
        ends = time.monotonic() + PARTING_SECONDS
        while (told := self._read(job))["status"] in GOING_ON:
            if time.monotonic() > ends:
                raise ActuatorError(f"Ray has not taken the request in {PARTING_SECONDS:g} s: {told.get('message')}")
            time.sleep(TAIL_SECONDS / 10)
        if told["status"] != "SUCCEEDED":
            raise ActuatorError(f"Ray did not take the request: {told.get('message')}")
        self._call("DELETE", f"/api/jobs/{job}")

    def _submit(self, job: str, command: str, environment: Mapping[str, str], metadata: Mapping[str, str]) -> None:
        env = {"env_vars": dict(environment)}
        body = {"entrypoint": command, "submission_id": job, "runtime_env": env, "metadata": metadata}
        self._call("POST", "/api/jobs/", body)

    def _read(self, job: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._call("GET", f"/api/jobs/{job}").json()
        return found

    def _look(self) -> int | None:
        told = self._read(self._job)
        if told["status"] in GOING_ON:
            return None
        if told["status"] == "STOPPED":
            return 128 + self._ending
        code = told.get("driver_exit_code")
        if told["status"] == "SUCCEEDED":
            return 0
        return KILLED if code is None else int(code) if code >= 0 else 128 - int(code)

    def _signal(self, number: int, seconds: float) -> None:  # noqa: ARG002 # Ray sends SIGTERM, and kills after 3 s
        self._call("POST", f"/api/jobs/{self._job}/stop")

    def _kill(self) -> None:
        """Do nothing: Ray kills a stopped job by itself."""

    def _remove(self) -> None:
        self._request({})
        self._call("DELETE", f"/api/jobs/{self._job}")

    @override
    def leftovers(self, name: str) -> Iterable[Leftover]:
        running = [one for one in self._call("GET", "/api/jobs/").json() if one.get("status") in GOING_ON]
        labelled = [(one["submission_id"], one.get("metadata") or {}) for one in running]
        return [Leftover(job, told.get("launcher", "")) for job, told in labelled if told.get("name") == name]

    @override
    def discard(self, one: Leftover) -> None:
        """Stop the job; its resource request remains until the run that starts replaces it."""
        self._call("POST", f"/api/jobs/{one.id}/stop")

    @override
    def close(self) -> None:
        super().close()
        self._http.close()

    def _follow(self, sink: Sink) -> None:
        """Pass the job's log to ``sink``; the slower the API returns it, the less often it is read."""
        seen, ended = 0, False
        while not ended:
            ended, began = self._status is not None, time.monotonic()
            try:
                logs = str(self._call("GET", f"/api/jobs/{self._job}/logs").json()["logs"]).encode()
            except ActuatorError:
                logs = b""
            if len(logs) > seen:
                sink("stdout", logs[seen:])
                seen = len(logs)
            took = time.monotonic() - began
            time.sleep(0 if ended else max(TAIL_SECONDS, took / TAIL_SHARE))

    def _call(self, method: str, path: str, body: Any = None) -> httpx.Response:
        try:
            answer = self._http.request(method, path, json=body)
        except httpx.RequestError as error:
            remedy = "name Ray's dashboard: --option address=http://HEAD:8265"
            raise Unavailable(f"Ray doesn't answer at {self._address}: {error}; {remedy}") from error
        if not answer.is_success:
            raise ActuatorError(f"Ray: {method} {path}: {answer.status_code} {answer.text[:200]}")
        return answer


def _labels(name: str) -> dict[str, str]:
    return {"name": name, "launcher": launcher()}


def bundles(allocation: Allocation) -> list[dict[str, float]]:
    """Resource bundles for Ray's autoscaler: one per worker, all equal; without ``workers``, one per core, GPU and GiB.

    Amounts are in Ray's units: CPUs, GPUs, and bytes of memory.

    Raises:
        ActuatorError: there are more than ``MOST_BUNDLES``.
    """
    workers = round(allocation.get("workers", 0))
    amounts = {theirs: unit * allocation[name] for name, (theirs, unit) in UNITS_OF_RAY.items() if name in allocation}
    number = workers or sum(math.ceil(amount / PIECES[name]) for name, amount in amounts.items())
    if number > MOST_BUNDLES:
        raise ActuatorError(f"{number:,} bundles: up to {MOST_BUNDLES:,} are accepted")
    if workers:
        return [{name: amount / workers for name, amount in amounts.items()} or {"CPU": 1.0}] * workers
    return [one for name, amount in amounts.items() for one in _pieces(name, amount)]


def _pieces(name: str, amount: float) -> list[dict[str, float]]:
    """Bundles of at most one core, GPU or GiB each, so that any node can provide one; ``amount`` in Ray's unit."""
    whole, rest = divmod(amount, PIECES[name])
    return [{name: PIECES[name]}] * int(whole) + ([{name: rest}] if rest else [])
