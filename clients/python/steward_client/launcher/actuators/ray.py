"""Ray jobs, through the REST API of Ray's dashboard; an allocation is a resource request to Ray's autoscaler.

``request_resources`` is called on the cluster by a one-line job, so that Ray need not be installed here. The job itself
must use the available resources, as Ray Tune, Ray Data and elastic trainers do. Ray keeps one request, the latest:
each includes those of other live runs, which it finds in the metadata of their requests' jobs. If the launcher is
killed, job and request remain until the same run is started again (see `leftovers`); ``ray job list`` and ``ray job
stop`` end the job.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import shlex
import signal
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import httpx
from typing_extensions import override

from steward_client.ray_api import RayApi, RayError, RayUnavailable

from .contract import UNITS, ActuatorError, Allocation, Launch, Range, Settable, Sink, Unavailable
from .leftovers import Leaving, Leftover, launcher
from .remote import KILLED, Remote

TAIL_SECONDS, TAIL_SHARE = 0.2, 0.05
REQUEST_SECONDS, REQUEST_TRIES = 90.0, 5
"""Longest wait for a request, whose Python imports Ray first; how often it is made if others come between."""
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
REQUESTS, REQUEST_OF, REQUESTED = "steward-request-", "steward_request_of", "steward_requested"
AHEAD = re.compile(rb"\A(\d{4}-\d\d-\d\d [\d:,]+\s+INFO job_\w+\.py:\d+ -- [^\n]*\n)+")
"""What Ray itself writes into a job's log ahead of its output; it says besides what it runs, ahead or later."""


class RayJob(Remote, Leaving):
    """Runs a command as a Ray job.

    Args:
        wanted: the resources to be set: ``workers`` (bundles), ``cpu`` (percent of a core), ``gpus``, ``memory`` (MiB).
            With ``workers`` the others are divided among the bundles, else requested in bundles of one core, GPU or
            GiB.
        address: URL of Ray's dashboard, as `RayApi` has it, which finds Ray's token, too.
        python: the Python command on the cluster.

    Raises:
        Unavailable: Ray doesn't respond.
        CannotSet: another resource is wanted, or not in that range.
    """

    name = "ray"

    def __init__(self, wanted: Mapping[str, Range], address: str = "", python: str = "python") -> None:
        settable = {name: Settable(UNITS[name], 1.0, None, HOW) for name in ("workers", "cpu", "gpus", "memory")}
        super().__init__(settable, wanted)
        try:
            self._api = RayApi(address)
        except RayUnavailable as error:
            raise Unavailable(str(error)) from error
        self._python, self._job, self._requested = python, f"steward-{secrets.token_hex(8)}", ""
        self._entrypoint, self._stopping = "", False
        try:
            self._call("GET", "/api/version")
        except ActuatorError:
            self._api.close()
            raise

    def _begin(self, launch: Launch, allocation: Allocation) -> Allocation:
        """Start the job, then request: others count the requests of jobs that they see."""
        self._entrypoint = shlex.join(launch.command)
        self._submit(self._job, self._entrypoint, launch.environment, _labels(launch.name))
        try:
            self._request(allocation)
        except ActuatorError:
            with suppress(ActuatorError):  # else it is a leftover, which the next start removes
                self._signal(signal.SIGTERM, 0.0)
            raise
        try:
            return self._there(allocation)
        except ActuatorError:  # unknown just now: all of it waits until the next look
            return dict.fromkeys(allocation, 0.0)

    def _set(self, allocation: Allocation) -> str:
        self._request({**self._current, **allocation})
        return self._waits_as_requested(allocation)

    def _waits(self, allocation: Allocation) -> str:
        """Which of the requested resources the cluster lacks, by the autoscaler's report; empty if there is none.

        Raises:
            Unavailable: Ray doesn't respond.
        """
        if (totals := self._totals()) is None:
            return ""
        request: dict[str, float] = {}
        for bundle in bundles({**self._current, **allocation}):
            for name, amount in bundle.items():
                request[name] = request.get(name, 0.0) + amount
        lacking = [
            f"{name} {totals.get(name, 0.0):g} of {amount:g}"
            for name, amount in request.items()
            if totals.get(name, 0.0) < amount * (1 - ROUNDING)
        ]
        return f"Insufficient resources: the cluster has {', '.join(lacking)}" if lacking else ""

    def _there(self, allocation: Allocation) -> Allocation:
        """What the cluster has of the first allocation: whole workers, or else of each resource as much as there is."""
        if (totals := self._totals()) is None:
            return allocation
        if workers := round(allocation.get("workers", 0)):
            bundle = bundles(allocation)[0].items()
            fitting = min(workers, *(int(totals.get(name, 0.0) / each + ROUNDING) for name, each in bundle))
            return {name: value * fitting / workers for name, value in allocation.items()}
        amounts = {name: totals.get(theirs, 0.0) / unit for name, (theirs, unit) in UNITS_OF_RAY.items()}
        return {name: min(value, amounts[name]) for name, value in allocation.items()}

    def _totals(self) -> dict[str, float] | None:
        """The cluster's resources in Ray's units, by the autoscaler's report; None: there is none. Raises Unavailable
        without a response."""
        try:
            report = self._call("GET", "/api/cluster_status").json()["data"]["clusterStatus"]["loadMetricsReport"]
            return {name: float(total) for name, (_, total) in report["usage"].items()}
        except Unavailable:
            raise
        except (ActuatorError, LookupError, TypeError, ValueError):  # a cluster without an autoscaler, or an older one
            return None

    def _withdraw(self, allocation: Allocation) -> None:  # noqa: ARG002
        self._request(self._former)

    def _request(self, allocation: Allocation) -> None:
        """Request an allocation and those of other live runs, until no other has come between.

        Raises:
            ActuatorError: Ray doesn't respond or refuses; the former request stays.
        """
        others: list[Allocation] | None = None
        for _ in range(REQUEST_TRIES):
            if (requests := self._others()) == others:
                return
            self._request_once(allocation, others := requests)

    def _others(self) -> list[Allocation]:
        """What other runs have requested whose jobs go on."""
        jobs = {one["submission_id"]: one for one in self._list()}
        for name, one in jobs.items():  # a job that is deleted as soon as it has ended: Ray writes its end down anew
            if name.startswith(REQUESTS) and one["status"] == "FAILED" and not one.get("metadata"):
                self._call("DELETE", f"/api/jobs/{name}", gone=True)
        live = {name for name, one in jobs.items() if one["status"] in GOING_ON and name != self._job}
        requests = [one.get("metadata") or {} for _, one in sorted(jobs.items()) if one["status"] == "SUCCEEDED"]
        return [json.loads(labels[REQUESTED]) for labels in requests if labels.get(REQUEST_OF) in live]

    def _request_once(self, allocation: Allocation, others: Iterable[Allocation]) -> None:
        job = f"{REQUESTS}{secrets.token_hex(8)}"
        wanted = [one for each in (allocation, *others) for one in bundles(each)]
        labels = {REQUEST_OF: self._job, REQUESTED: json.dumps(dict(allocation))}
        self._submit(job, shlex.join([self._python, "-c", REQUEST]), {"STEWARD_BUNDLES": json.dumps(wanted)}, labels)
        ends = time.monotonic() + REQUEST_SECONDS
        while (state := self._read(job))["status"] in GOING_ON:
            if time.monotonic() > ends:
                self._call("POST", f"/api/jobs/{job}/stop")
                raise ActuatorError(f"Ray has not taken the request in {REQUEST_SECONDS:g} s: {state.get('message')}")
            time.sleep(TAIL_SECONDS / 2)
        if state["status"] != "SUCCEEDED":
            raise ActuatorError(f"Ray did not take the request: {state.get('message')}")
        former, self._requested = self._requested, job if allocation else ""
        for one in filter(None, (former, "" if allocation else job)):
            self._call("DELETE", f"/api/jobs/{one}", gone=True)

    def _submit(self, job: str, command: str, environment: Mapping[str, str], metadata: Mapping[str, str]) -> None:
        env = {"env_vars": dict(environment)}
        body = {"entrypoint": command, "submission_id": job, "runtime_env": env, "metadata": metadata}
        self._call("POST", "/api/jobs/", body)

    def _read(self, job: str) -> Mapping[str, Any]:
        job_state: Mapping[str, Any] = self._call("GET", f"/api/jobs/{job}").json()
        return job_state

    def _look(self) -> int | None:
        response = self._call("GET", f"/api/jobs/{self._job}", gone=True)
        if response.status_code == HTTPStatus.NOT_FOUND:
            self.reason = "Ray doesn't know the job any more: its head was restarted, or the job was deleted"
            return KILLED
        state = response.json()
        if state["status"] in GOING_ON:
            return None
        code = state.get("driver_exit_code")
        if not self._stopping and (state["status"] == "STOPPED" or code is None):
            self.reason = str(state.get("message") or "").partition("\n")[0]
        if state["status"] == "STOPPED":
            return 128 + self._ending
        if state["status"] == "SUCCEEDED":
            return 0
        return KILLED if code is None else int(code) if code >= 0 else 128 - int(code)

    def _signal(self, number: int, seconds: float) -> None:  # noqa: ARG002 # Ray sends SIGTERM, and kills after 3 s
        self._stopping = True
        self._call("POST", f"/api/jobs/{self._job}/stop")

    def _kill(self) -> None:
        """Do nothing: Ray kills a stopped job by itself."""

    def _remove(self) -> None:
        self._request({})
        self._call("DELETE", f"/api/jobs/{self._job}", gone=True)

    @override
    def leftovers(self, name: str) -> Iterable[Leftover]:
        running = [one for one in self._list() if one["status"] in GOING_ON]
        labelled = [(one["submission_id"], one.get("metadata") or {}) for one in running]
        return [Leftover(job, labels.get("launcher", "")) for job, labels in labelled if labels.get("name") == name]

    @override
    def discard(self, one: Leftover) -> None:
        """Stop the job; the next request of any run no longer includes its own."""
        self._call("POST", f"/api/jobs/{one.id}/stop")

    @override
    def close(self) -> None:
        super().close()
        self._api.close()

    def _follow(self, sink: Sink) -> None:
        """Pass the job's log to ``sink``; the slower the API returns it, the less often it is read."""
        length, ended = 0, False
        runs = f"Running entrypoint for job {self._job}: {self._entrypoint}\n".encode()
        while not ended:
            ended, began = self._status is not None, time.monotonic()
            try:
                logs = str(self._call("GET", f"/api/jobs/{self._job}/logs").json()["logs"]).encode()
                logs = AHEAD.sub(b"", logs).replace(runs, b"", 1)
            except ActuatorError:
                logs = b""
            if len(logs) > length:
                sink("stdout", logs[length:])
                length = len(logs)
            took = time.monotonic() - began
            time.sleep(0 if ended else max(TAIL_SECONDS, took / TAIL_SHARE))

    def _list(self) -> list[Mapping[str, Any]]:
        """All submitted jobs; others, such as of notebooks, have no id of this kind."""
        return [one for one in self._call("GET", "/api/jobs/").json() if one.get("submission_id")]

    def _call(self, method: str, path: str, body: Any = None, *, gone: bool = False) -> httpx.Response:
        """Call Ray; ``gone``: 404 is an answer. Raises Unavailable, or ActuatorError for another status."""
        try:
            return self._api.call(method, path, body, gone=gone)
        except RayUnavailable as error:
            raise Unavailable(f"{error} (--option address=…)") from error
        except RayError as error:
            raise ActuatorError(str(error)) from error


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
