"""A command of one's own under decisions: governed, failing, interrupted, without a service, learned from nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from fastapi.testclient import TestClient
from steward_client.launcher import arguments, followed, governed
from steward_client.launcher.actuators import local, registry
from steward_client.launcher.actuators.contract import Allocation, CannotSet, Launch
from steward_client.launcher.actuators.local import LocalProcesses
from steward_client.launcher.limits.groups import PREFIX, parents
from steward_client.launcher.limits.guarded import Guarded
from steward_client.launcher.main import main
from steward_client.launcher.watched import LARGEST_SENT, TRACEBACK, Watched

from app.database.engine import Database
from app.settings import Settings
from tests.clients.cutting import BEFORE, Cutting
from tests.clients.launcher.serving import CPU, FAMILY, PRINTS, REPORTS, SPEC, TELLS, WAITS, script, worked
from tests.clients.test_foreign import ANSWERS
from tests.clients.test_reaction import contingency, with_contingencies
from tests.clients.test_run import Handler, forwarded
from tests.servers import wait_until
from workers.kinds.iterative.optimum import NoOptimum

__all__ = ["forwarded"]

Serve = Callable[..., Cutting]


@pytest.fixture
def serve(forwarded: Handler, client: TestClient) -> Iterator[Serve]:
    """Serves the application on a socket, with a workload."""
    assert client.post("/workloads", json=SPEC).status_code == 201
    with ExitStack() as stack:

        def start(handler: Handler = forwarded) -> Cutting:
            return stack.enter_context(Cutting(handler, lambda _: None).running())

        yield start
        for job in client.get("/jobs?limit=200").json()["items"]:  # requests train in their threads
            if job["state"] in ("queued", "running"):
                client.post(f"/jobs/{job['id']}/cancel")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it is called."""
    monkeypatch.setattr(governed, "WAIT_SECONDS", 0.2)
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def run(url: str, *text: str) -> int:
    return main(["--workload", "busy", "--url", url, *text])


def runs(client: TestClient) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.get("/runs").json()["items"]
    return items


def iterations(client: TestClient, run: str) -> list[dict[str, Any]]:
    iterations, path = list[dict[str, Any]](), f"/runs/{run}/iterations?limit=200"
    while path:  # on a slow machine a command that waits has more than a page of them
        page = client.get(path).json()
        iterations += page["items"]
        path = page.get("next")
    return iterations


def test_a_script_is_governed(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, script(folder, PRINTS), "6", "0.2"]  # one more than the workload has
    assert run(serve().url, "--deadline", "60s", "--plot", "run.svg", "--", *command) == 0
    assert "the deadline" in Path("run.svg").read_text()
    output = capfd.readouterr()
    assert output.out == "".join(f"epoch {n}: loss={1 / (n + 1):.3f}\n" for n in range(6))
    for part in (
        "lines like 'Epoch 3'",
        "start-up and first iteration: ",
        "cpu: set by ",
        "finished after 6 iterations (workload 'busy' has 5) in ",
        "of the deadline of 1 min",
        "cpu %",
    ):
        assert part in output.err, output.err
    assert "the workload has 5 iterations" in output.err
    (one,) = runs(client)
    assert (one["state"], one["iterations"], one["start"]["first_iteration"]) == ("finished", 5, 1)
    assert 0 < one["start"]["targets"]["iteration_seconds"] < 60  # without the start, of which the first can't be told
    items = iterations(client, one["id"])
    assert [item["iteration"] for item in items] == [1, 2, 3, 4]
    decided = [20.0, *(item["decision"]["allocation"]["cpu"] for item in items)]
    assert [item["report"]["allocation"]["cpu"] for item in items] == decided[:-1]
    assert all(0.02 <= item["report"]["metrics"]["iteration_seconds"] < 60 for item in items)


@pytest.mark.slow
def test_the_summary_tells_the_deadline_that_the_run_had_in_the_end(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def change() -> None:
        wait_until(lambda: any(one["start"].get("first_iteration") for one in runs(client)), 20, "the run to begin")
        (one,) = (one for one in runs(client) if one["start"].get("first_iteration"))
        client.patch(f"/runs/{one['id']}", json={"targets": {"iteration_seconds": 120}}).raise_for_status()

    thread = threading.Thread(target=change)
    thread.start()
    assert run(serve().url, "--deadline", "60s", "--", sys.executable, script(folder, PRINTS), "6", "0.3") == 0
    thread.join()
    assert "of the deadline of 2 min" in capfd.readouterr().err


class Bounded(LocalProcesses):
    """Where no more than 33 % of a core is given, whatever is asked for."""

    def start(self, launch: Launch) -> None:
        """Start with what there is."""
        super().start(replace(launch, allocation={"cpu": min(launch.allocation["cpu"], 33.0)}))

    def apply(self, allocation: Allocation) -> Allocation:
        """Set what there is."""
        return super().apply({"cpu": min(allocation["cpu"], 33.0)})


SLOW = "import time\nfor n in range(4):\n    time.sleep(1.0)\n    print(f'epoch {n}: loss=1')\n"


def test_contingencies_are_applied_within_an_iteration_and_reported(
    serve: Serve, forwarded: Handler, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    handler = with_contingencies(
        forwarded, contingency(0.4, cpu=80), contingency(0.6, cpu=40), contingency(900, cpu=20)
    )
    assert run(serve(handler).url, "--", sys.executable, script(folder, SLOW)) == 0
    output = capfd.readouterr().err
    assert "within iteration 1: cpu 40 % (contingency: not over)" in output
    (one,) = runs(client)
    reports = [item["report"] for item in iterations(client, one["id"])]
    assert len(reports) == 3  # without the first, of which the start can't be told
    for report in reports:
        parts = report["segments"]
        amounts = [part["allocation"]["cpu"] for part in parts]
        assert amounts[-2:] == [80.0, 40.0]  # whatever it began with
        assert report["allocation"] == parts[-1]["allocation"]
        took = report["metrics"]["iteration_seconds"]
        assert sum(part["seconds"] for part in parts) == pytest.approx(took)
        assert took - parts[-1]["seconds"] >= 0.6


def test_nothing_is_applied_within_an_iteration_where_a_change_restarts_the_command(
    serve: Serve, forwarded: Handler, client: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources = LocalProcesses.resources
    monkeypatch.setattr(
        LocalProcesses,
        "resources",
        lambda self: {name: replace(one, restarts=True) for name, one in resources(self).items()},
    )
    applied, apply = list[Allocation](), LocalProcesses.apply

    def report(self: LocalProcesses, allocation: Allocation) -> Allocation:
        applied.append(allocation)
        return apply(self, allocation)

    monkeypatch.setattr(LocalProcesses, "apply", report)
    handler = with_contingencies(forwarded, contingency(0.2, cpu=40))
    assert run(serve(handler).url, "--policy", "hold", "--", sys.executable, script(folder, SLOW)) == 0
    (one,) = runs(client)
    assert not [item for item in iterations(client, one["id"]) if item["report"].get("segments")]
    assert {"cpu": 40.0} not in [dict(allocation) for allocation in applied]


@pytest.mark.slow
def test_what_is_really_given_is_reported(
    serve: Serve, client: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "factory", lambda _: Bounded)
    assert run(serve().url, "--deadline", "6s", "--", sys.executable, script(folder, PRINTS), "6", "0.4") == 0
    items = iterations(client, runs(client)[0]["id"])
    reported = [item["report"]["allocation"]["cpu"] for item in items]
    decided = [item["decision"]["allocation"]["cpu"] for item in items]
    assert set(reported) <= {20.0, 40.0}  # the nearest of the grid to what was given
    assert 40.0 in reported
    assert max(decided) > 40


class Full(LocalProcesses):
    """Where 40 % of a core is free: more waits until ``room`` says so, and over 80 % is refused."""

    room = False
    wanted: Allocation | None = None

    def start(self, launch: Launch) -> None:
        """Start with what there is."""
        super().start(replace(launch, allocation={"cpu": 40.0}))
        self.wanted = launch.allocation if 40 < launch.allocation["cpu"] <= 80 and not self.room else None

    def apply(self, allocation: Allocation) -> Allocation:
        """Set what there is, or let it wait."""
        if allocation["cpu"] > 80:
            raise CannotSet("cpu", allocation["cpu"], "80 % is the quota", "QuotaExceeded")
        waits = allocation["cpu"] > 40 and not self.room
        self.wanted = allocation if waits else None
        return self.current() if waits else super().apply(allocation)

    def poll(self) -> str:
        """Why it waits."""
        if self.wanted is not None and type(self).room:
            super().apply(self.wanted)
            self.wanted = None
        return "" if self.wanted is None else "Deferred: no room"

    def withdraw(self) -> None:
        """Give it up."""
        self.wanted = None


@pytest.mark.slow
def test_what_waits_is_reported_and_once_granted_is_part_of_the_iteration_in_which_it_came(
    serve: Serve,
    forwarded: Handler,
    client: TestClient,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    result: Any = type("Here", (Full,), {})
    monkeypatch.setattr(registry, "factory", lambda _: result)
    visited = list[int]()

    def handler(request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            visited.append(1)
            result.room = len(visited) >= 2
        return forwarded(request)

    command = [sys.executable, script(folder, SLOW.replace("range(4)", "range(5)"))]
    assert run(serve(handler).url, "--deadline", "4s", "--", *command) == 0
    reports = [item["report"] for item in iterations(client, runs(client)[0]["id"])]
    requests = [report.get("requested") for report in reports]
    states = [(one["state"], one["reason"]) for one in requests if one]
    assert ("requested", "Deferred: no room") in states
    assert {report["allocation"]["cpu"] for report, one in zip(reports, requests, strict=True) if one} == {40.0}
    changed = [report["segments"] for report in reports if report.get("segments")]
    assert changed[0][0]["allocation"]["cpu"] == 40.0
    assert changed[0][-1]["allocation"]["cpu"] > 40
    output = capfd.readouterr().err
    assert "it waits: Deferred: no room; the present limits stay" in output
    assert "what was requested is granted now" in output


@pytest.mark.slow
@pytest.mark.parametrize("unanswered", [0, 6])
def test_what_is_refused_is_reported_once_and_not_asked_for_until_its_back_off_ends(
    serve: Serve,
    forwarded: Handler,
    client: TestClient,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    unanswered: int,
) -> None:
    """Also while the service, whose last decision holds, doesn't know of the refusal."""
    requests, visited = list[float](), list[str]()

    def handler(request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            visited.append(request.url.path)
            if len(visited) <= unanswered:
                return httpx.Response(503)
        return forwarded(request)

    class Quota(Full):
        room = True

        def apply(self, allocation: Allocation) -> Allocation:
            requests.append(allocation["cpu"])
            return super().apply({"cpu": 90.0} if allocation["cpu"] > 40 else allocation)

    monkeypatch.setattr(registry, "factory", lambda _: Quota)
    command = [sys.executable, script(folder, PRINTS), "5", "0.3"]
    assert run(serve(handler).url, "--deadline", "2s", "--", *command) == 0
    items = iterations(client, runs(client)[0]["id"])
    refused = [one for item in items if (one := item["report"].get("requested"))]
    assert refused
    assert {(one["state"], one["reason"]) for one in refused} == {("refused", "QuotaExceeded")}
    assert len({one["allocation"]["cpu"] for one in refused}) == len(refused), "within a minute none is asked for twice"
    assert len(requests) <= len(items)
    granted = items[-2]["decision"]["granted"]
    assert granted["allocation"] == {"cpu": items[-2]["report"]["allocation"]["cpu"]}


def test_a_command_may_name_the_rule_that_decides(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    there, command = serve(), [sys.executable, script(folder, PRINTS), "6", "0.1"]
    assert run(there.url, "--policy", "hold", "--deadline", "3s", "--", *command) == 0
    (one,) = runs(client)
    assert one["start"]["policy"] == "hold"
    assert {item["decision"]["policy"] for item in iterations(client, one["id"])} == {"hold"}
    assert run(there.url, "--policy", "nonesuch", "--", *command) == 1
    assert "must be one of hold, static_best, threshold, pid, model_predictive" in capfd.readouterr().err


def test_the_outcome_is_the_services_and_costs_have_its_currency(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert client.get("/workloads/busy").json()["currency"] == "$"
    url, late = serve().url, PRINTS + "import time\ntime.sleep(0.5)\n"  # after the last iteration, which counts alone
    for deadline, size in (("60", "0.01"), ("0.3", "0.2")):
        command = [sys.executable, script(folder, late), "5", size]
        assert run(url, "--deadline", deadline, "--", *command) == 0
        output = capfd.readouterr().err
        one = next(one for one in runs(client) if f"outcome: {one['outcome']} ({one['outcome_reason']})" in output)
        assert one["outcome"] == ("met" if deadline == "60" else "missed")
        assert re.search(r"; cost \$[\d.e-]+$", output, re.MULTILINE), output


def test_a_script_may_report_and_follow_by_files(serve: Serve, client: TestClient, folder: Path) -> None:
    assert run(serve().url, "--", sys.executable, script(folder, TELLS), "3", "0.01") == 0
    (one,) = runs(client)
    measured = [item["report"]["metrics"]["iteration_seconds"] for item in iterations(client, one["id"])]
    assert (one["state"], measured) == ("finished", [0.01] * 3)


class Elsewhere(LocalProcesses):
    """Where no file of the launcher's is seen."""

    shares_files = False


@pytest.mark.parametrize(("text", "seconds"), [(REPORTS, [0.01] * 3), (PRINTS, None)], ids=["reports", "prints"])
def test_a_script_elsewhere_reports_by_itself_or_is_reported(
    serve: Serve,
    client: TestClient,
    folder: Path,
    text: str,
    seconds: list[float] | None,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(followed, "LOOK_SECONDS", 0.4)
    monkeypatch.setattr(registry, "factory", lambda _: Elsewhere)
    assert run(serve().url, "--", sys.executable, script(folder, text), "3", "0.01") == 0
    (one,) = runs(client)
    measured = [item["report"]["metrics"]["iteration_seconds"] for item in iterations(client, one["id"])]
    assert (one["state"], measured) == ("finished", seconds or measured)
    assert len(measured) == (3 if seconds else 2)
    assert "not reported" not in capfd.readouterr().err


class Late(Full):
    """Where the rest of the first allocation comes by the second look."""

    def start(self, launch: Launch) -> None:
        """All of it waits."""
        super().start(launch)
        self.wanted = launch.allocation

    def poll(self) -> str:
        """There is room from the next look on."""
        waits = super().poll()
        type(self).room = True
        return waits


LONG = """
import json, os, sys, time
form = sys.argv[1]
def tell(n, seconds):
    if form:
        print(form.format(n), end="", flush=True)
    elif n:
        with open(os.environ["STEWARD_ITERATIONS"], "a") as file:
            file.write(json.dumps({"iteration": n - 1, "metrics": {"iteration_seconds": seconds}}) + "\\n")
tell(0, 0)
for n in range(4):
    seconds = 0.2 if n else 2.5
    time.sleep(seconds)
    tell(n + 1, seconds)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shares", "form", "options"),
    [
        (True, "", []),  # its start is known
        (True, "{}/4 [==]\n", []),
        (True, "\r{}/4", []),  # each is read when the next has come
        (False, "{}/4 [==]\n", []),
        (True, "{}/4 [==]\n", ["--advise"]),
    ],
)
def test_what_comes_within_the_first_iteration_is_part_of_it_wherever_it_is_seen(
    serve: Serve,
    client: TestClient,
    folder: Path,
    shares: bool,
    form: str,
    options: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(followed, "LOOK_SECONDS", 0.2)
    there: Any = type("There", (Late,), {"shares_files": shares})
    monkeypatch.setattr(registry, "factory", lambda _: there)
    assert run(serve().url, "--deadline", "1s", *options, "--", sys.executable, script(folder, LONG), form) == 0
    first, *others = [item["report"] for item in iterations(client, runs(client)[0]["id"])]
    assert [one["allocation"]["cpu"] for one in first["segments"]] == [40, 100]
    assert 0.5 < first["segments"][0]["seconds"] < first["metrics"]["iteration_seconds"]
    assert [one["allocation"]["cpu"] for one in others] == [100] * (2 if form else 3)
    assert not any(one.get("segments") for one in others)


@pytest.mark.parametrize(
    ("command", "status", "text"),
    [
        (["sh", "-c", "exit 7"], 7, "failed after 0 iterations"),
        (["sh", "-c", "kill -9 $$"], 137, "killed by SIGKILL"),
        (["no-such-program"], 127, "steward-run: no-such-program: No such file or directory"),
    ],
)
def test_the_status_is_the_commands_own_and_its_run_has_failed(
    serve: Serve, client: TestClient, command: list[str], status: int, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(serve().url, "--", *command) == status
    assert text in capfd.readouterr().err
    assert [one["state"] for one in runs(client)] == ([] if status == 127 else ["failed"])  # 127: it wasn't started


FAILS = """
import sys
import time
print("\\x1b[31mred\\x1b[0m", flush=True)
for n in range(4):
    print(f"\\r{n}/4", end="", flush=True)
print("\\rdone", flush=True)
for n in range(150):
    print("line", n)
sys.stdout.flush()
time.sleep(1)  # a thread reads each stream: these lines are to come first

def deeper(depth):
    if depth:
        deeper(depth - 1) if depth % 2 else deeper(depth - 1)
    raise MemoryError("no room for \\N{SNOWMAN}")

try:
    deeper(3)
except MemoryError:
    raise RuntimeError("given up")
"""


def test_the_last_lines_of_a_failed_command_s_output_reach_the_service_unless_it_is_told_not_to(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url = serve().url
    assert run(url, "--", sys.executable, script(folder, FAILS)) == 1
    assert "\x1b[31mred" in capfd.readouterr().out, "it passes through unchanged"
    assert run(url, "--no-output", "--", sys.executable, script(folder, FAILS)) == 1
    assert run(url, "--", sys.executable, script(folder, PRINTS), "3", "0.01") == 0
    finished, withheld, failed = (client.get(f"/runs/{one['id']}").json() for one in runs(client))
    assert (finished["output"], withheld["output"], withheld["state"]) == (None, None, "failed")
    assert failed["outcome_reason"] == withheld["outcome_reason"] == "exit status 1: RuntimeError: given up"
    lines = failed["output"].splitlines()
    assert {"line 149", TRACEBACK, "MemoryError: no room for \N{SNOWMAN}", "RuntimeError: given up"} <= set(lines)
    assert ("\x1b" in failed["output"], len(failed["output"]) <= LARGEST_SENT) == (False, True)


@pytest.mark.parametrize(
    ("pieces", "parts"),
    [
        ([b"\x1b[31mred\x1b[0m\n", b"bell\x07 tab\t.\n"], ["red", "bell tab\t."]),
        ([b"\r1/9", b"\r2/9", b"\r9/9\n", b"end\n"], ["9/9", "end"]),
        ([b"%d\n" % number for number in range(300)], [f"{number}" for number in range(200, 300)]),
        (
            [b"before\n", TRACEBACK.encode() + b"\n", *(b"  deep %d\n" % number for number in range(150)), b"E: x\n"],
            [TRACEBACK, *(f"  deep {number}" for number in range(150)), "E: x"],
        ),
        ([b"x" * 1_999 + b"\n"] * 20, ["x" * 1_999] * 8),
        ([], []),
    ],
)
def test_what_is_kept_of_output_is_bounded_and_without_escape_codes(
    pieces: list[bytes], parts: list[str], tmp_path: Path
) -> None:
    watched = Watched(replace(arguments.read("steward-run", ["--", "true"])), LocalProcesses({}), tmp_path, print)
    take = watched._sink()
    assert take is not None
    for piece in pieces:
        take("stdout", piece)
    assert (watched.output.splitlines(), len(watched.output) <= LARGEST_SENT) == (parts, True)


@contextmanager
def nothing_left(folder: Path) -> Iterator[None]:
    """All that was started from that folder has ended; what has not, is ended, and was wrong."""
    before = set(psutil.Process().children())  # servers that other tests share
    try:
        yield
    finally:
        left = set(psutil.Process().children()) - before
        left |= {one for one in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(one.info["cmdline"] or [])}
        for one in left:
            with suppress(psutil.NoSuchProcess):
                for below in (*one.children(recursive=True), one):
                    below.kill()
    assert not left


@contextmanager
def interrupted_once(there: Path) -> Iterator[None]:
    """SIGINT comes as soon as that file is there; once all is over, none comes."""
    over = threading.Event()

    def interrupt() -> None:
        while not over.wait(0.02):
            if there.exists():
                os.kill(os.getpid(), signal.SIGINT)
                return

    timer = threading.Thread(target=interrupt)
    timer.start()
    try:
        yield
    finally:
        over.set()
        timer.join()


def test_ctrl_c_is_passed_on_and_all_is_undone(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, script(folder, FAMILY)]
    url = serve().url
    with nothing_left(folder), interrupted_once(Path("ready")):
        assert run(url, "--option", "cpu_method=duty", "--", *command) == 130
    out = capfd.readouterr().err
    assert "SIGINT: passed on to the command" in out
    assert "KeyboardInterrupt" in out
    assert "cancelled after 0 iterations" in out
    assert [(one["state"], one["outcome"], one["outcome_reason"]) for one in runs(client)] == [
        ("cancelled", "cancelled", "Ctrl-C (SIGINT)")
    ]


def test_ctrl_c_while_the_command_is_being_started_leaves_none_behind(
    serve: Serve, client: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any) -> Guarded:
        result = Guarded(*arguments)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)  # where it would be heard
        return result

    monkeypatch.setattr(local, "Guarded", interrupted)
    url = serve().url
    with nothing_left(folder):
        assert run(url, "--", "sleep", "60") == 130
    assert [one["state"] for one in runs(client)] == ["cancelled"]


def test_ctrl_c_while_a_run_is_replaced_leaves_one_that_has_ended(
    serve: Serve, forwarded: Handler, client: TestClient, folder: Path
) -> None:
    starts = list[str]()

    def interrupting(request: httpx.Request) -> httpx.Response:
        answer = forwarded(request)
        if (request.method, request.url.path) == ("POST", "/runs"):
            starts.append(answer.json()["id"])
            if len(starts) == 2:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.2)  # it is heard before the launcher gets the answer
        return answer

    url = serve(interrupting).url
    assert run(url, "--deadline", "60s", "--", sys.executable, script(folder, SLOW)) == 130
    assert [(one["id"], one["state"]) for one in runs(client)] == [(starts[1], "cancelled")]


def test_a_command_goes_on_without_the_service_and_its_iterations_are_kept(
    serve: Serve,
    client: TestClient,
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(governed, "PATIENCE_SECONDS", 3.0)
    service = serve()
    service.plan = lambda _: BEFORE if any("/iterations/1" in observation for observation in service.requests) else None
    assert run(service.url, "--", sys.executable, script(folder, PRINTS), "4", "0.01") == 0
    output = capfd.readouterr()
    assert output.out.count("epoch") == 4
    assert "what is reported is kept, the last decision holds" in output.err
    (file,) = folder.glob("*.ndjson")
    answer = client.post(
        "/workloads/busy/samples", content=file.read_bytes(), headers={"content-type": "application/x-ndjson"}
    )
    assert (answer.json()["accepted"], answer.json()["iterations"]) == (1, 3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["401 page", "404 JSON", "422 empty", "302 redirection", "200 another's success"])
def test_a_command_goes_on_while_a_proxy_answers_and_nothing_is_lost(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    service = serve()

    def plan(number: int) -> httpx.Response | None:
        reports = sum(one.startswith("PUT ") for one in service.requests)
        return ANSWERS[kind] if service.requests[number].startswith("PUT ") and 1 < reports < 5 else None

    service.plan = plan
    assert run(service.url, "--", sys.executable, script(folder, PRINTS), "5", "0.1") == 0
    output = capfd.readouterr()
    assert output.out.count("epoch") == 5
    assert "Traceback" not in output.err
    (one,) = runs(client)
    assert (one["state"], one["iterations"]) == ("finished", 5)
    assert [item["iteration"] for item in iterations(client, one["id"])] == [1, 2, 3, 4]


def test_a_decision_beyond_the_bounds_is_not_set(
    serve: Serve, forwarded: Handler, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def wrong(request: httpx.Request) -> httpx.Response:
        answer = forwarded(request)
        if request.method != "PUT":
            return answer
        return httpx.Response(answer.status_code, json=answer.json() | {"allocation": {"cpu": 1e6, "gpus": 2}})

    assert run(serve(wrong).url, "--", sys.executable, script(folder, PRINTS), "4", "0.05") == 0
    assert "not set: a decision has cpu 1000000.0 (20 to " in capfd.readouterr().err
    items = iterations(client, runs(client)[0]["id"])
    assert len({item["report"]["allocation"]["cpu"] for item in items}) == 1


def test_ctrl_c_after_the_end_of_the_command_keeps_its_iterations_and_its_status(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(governed, "PATIENCE_SECONDS", 600.0)
    service = serve()

    def plan(number: int) -> str | None:
        ends = list(dict.fromkeys(one for one in service.requests if one.startswith("PATCH /runs/")))
        if (
            service.requests[number] not in ends[1::2]
        ):  # the first of each launch is replaced once the start-up is known
            return None
        Path("ended").touch()
        return BEFORE

    service.plan = plan
    for status in (0, 3):
        command = [sys.executable, script(folder, PRINTS + f"sys.exit({status})\n"), "4", "0.01"]
        with interrupted_once(Path("ended")):
            assert run(service.url, "--", *command) == status
        output = capfd.readouterr().err
        assert f"{'failed' if status else 'finished'} after 4 iterations" in output
        assert "the service did not receive the end: SIGINT" in output
        assert "passed on" not in output
        assert "cancelled" not in output
        assert ("outcome: unknown, the service did not receive the run's end" in output) == (not status)
        Path("ended").unlink()
    assert [len(json.loads(file.read_text())["reports"]) for file in folder.glob("*.ndjson")] == [3, 3]
    assert [one["state"] for one in runs(client)] == ["running", "running"]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (
            ["--workload", "other"],
            "has no workload 'other' (there are: busy); --deadline 30m, or --learn, without --workload registers one",
        ),
        (["--workload", "busy", "--target", "loss=1"], "--target loss: workload 'busy' has iteration_seconds"),
        (["--workload", "busy", "--actuator", "moon"], "actuator 'moon' is not installed; there are: "),
        (["--workload", "busy", "--option", "x=1"], "has no option x=1; it has: cpu_method"),
        (["--learn", "--name", "busy", "--resource", "cpu=50..100/50%"], "is registered with cpu=20..100/20%"),
        (
            ["--name", "busy", "--deadline", "30m", "--resource", "cpu=50..100/50%"],
            "is registered with cpu=20..100/20%; leave it out, or give another --name\n",
        ),
        (["--workload", "busy", "--iterations", "7"], "--iterations 7: workload 'busy' is registered with "),
        (["--name", "other"], "has no workload 'other' (there are: busy); --deadline 30m, or --learn, registers one"),
        (["--learn", "--resource", "moons=1..2"], "moons=1… can't be set: local processes have cpu (%) and memory"),
    ],
)
def test_what_does_not_go_together_is_told_before_anything_starts(
    serve: Serve, client: TestClient, parts: list[str], text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--url", serve().url, *parts, "--", "touch", "started"]) in (2, 127)
    assert text in capfd.readouterr().err
    assert not Path("started").exists()
    assert runs(client) == []


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "duty"])
def test_a_killed_launcher_leaves_nothing_behind(serve: Serve, folder: Path, method: str) -> None:
    options = ["--workload", "busy", "--url", serve().url, "--option", f"cpu_method={method}"]
    module = [sys.executable, "-m", "steward_client.launcher.main", *options, "--", sys.executable]
    with subprocess.Popen([*module, script(folder, FAMILY)], stdout=subprocess.PIPE) as launcher:
        assert launcher.stdout is not None
        output = launcher.stdout.readline()
        family = psutil.Process(launcher.pid).children(recursive=True)
        launcher.kill()
    assert output == b"ready\n"
    assert len(family) == 4  # the guard, the command, its child, and what has turned itself into a daemon
    _, alive = psutil.wait_procs(family, timeout=60)
    assert alive == []
    assert not [left for parent in parents("cpu") for left in parent.glob(f"{PREFIX}{launcher.pid}-*")]


def unsolved(*_: object) -> None:
    """An optimum that can't be had: to look for one takes most of a training."""
    raise NoOptimum("left out")


@pytest.fixture
def working(
    serve: Serve, forwarded: Handler, database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Address of a service whose jobs are done before they are answered."""
    for name in ("training.VALIDATION_EPISODES", "judge.JUDGE_EPISODES", "judge.BELIEF_EPISODES"):
        monkeypatch.setattr(f"workers.kinds.iterative.{name}", 32)  # of 3,000 iterations each, in one training
    for name in ("training.plan", "judge.solve"):
        monkeypatch.setattr(f"workers.kinds.iterative.{name}", unsolved)
    monkeypatch.setattr("steward_client.live.TIMEOUT_SECONDS", 250.0)
    monkeypatch.setattr("steward_client.launcher.service.PATIENCE_SECONDS", 250.0)
    monkeypatch.setattr(governed, "PATIENCE_SECONDS", 250.0)
    return serve(worked(forwarded, database, settings)).url


@pytest.mark.slow
def test_a_command_that_goes_on_while_it_is_learned_from_is_governed_from_there(
    working: str, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    texts = ["--learn", "--url", working, "--resource", "cpu=25..100/25%", "--deadline", "300", "--budget", "1000"]
    assert main([*texts, "--profile-iterations", "6", "--", sys.executable, script(folder, WAITS)]) == 0
    output = capfd.readouterr()
    begun = output.out.count("epoch")
    for part in ("the command keeps cpu 100 %", "controlling from iteration", f"finished after {begun} iterations"):
        assert part in output.err, output.err
    assert output.err.count("iterations: by lines") == 1  # one process
    (one,) = runs(client)
    first = one["start"]["first_iteration"]
    assert (one["state"], one["iterations"]) == ("finished", begun)
    assert 0 < one["start"]["targets"]["iteration_seconds"] < 300
    assert [item["iteration"] for item in iterations(client, one["id"])] == list(range(first, begun))
    samples = client.get("/workloads/train/samples?limit=200").json()["items"]
    profiled = sum(sample["iterations"] for sample in samples if sample["source"] != "run")
    assert 6 <= profiled <= first - 1  # the first is none, nor are those that ended while the model was fitted
    assert sum(sample["iterations"] for sample in samples) == profiled + begun - first


@pytest.mark.slow
def test_a_bare_command_is_learned_from_and_then_governed(
    working: str, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, script(folder, PRINTS, "My script.py"), "14", "0.01"]
    texts = ["--learn", "--url", working, "--resource", "cpu=25..100/25%", "--deadline", "60", "--budget", "1000"]
    texts += ["--profile-iterations", "19"]
    assert main([*texts, "--", *command]) == 0
    output = capfd.readouterr().err
    for part in (
        "registered: workload 'my-script', 14 iterations",
        "13 of 19 iterations are measured: it is started again (start 2 of 20 at most",
        "the command is started again, once, under decisions",
        "19 iterations (19 wanted)",
        "model 2: ",
        "14 iterations",
    ):
        assert part in output, output
    (one,) = runs(client)
    assert (one["workload"], one["state"], one["iterations"]) == ("my-script", "finished", 14)
    samples = client.get("/workloads/my-script/samples?limit=50").json()["items"]
    assert sum(sample["iterations"] for sample in samples if sample["source"] != "run") >= 19
    measured = client.get("/workloads/my-script/samples", headers={"accept": "text/csv"}).text.splitlines()[1:]
    assert {float(line.split(",")[2]) for line in measured} == {25, 50, 75, 100}
    wait_until(lambda: client.get("/workloads/my-script/agents").json()["items"], 250)
    assert main([*texts, "--", *command]) == 0
    assert "learned before: agent 1 of workload 'my-script'" in capfd.readouterr().err


@pytest.mark.slow
def test_a_service_that_is_lost_while_it_is_measured_ends_no_command(
    serve: Serve,
    client: TestClient,
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("steward_client.launcher.service.PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(governed, "PATIENCE_SECONDS", 0.5)
    there = serve()
    there.plan = lambda _: BEFORE if any("/samples" in observation for observation in there.requests) else None
    command = [sys.executable, script(folder, PRINTS.replace("{n}:", "{n}/{count}:")), "60", "0.1"]
    texts = ["--learn", "--url", there.url, "--resource", "cpu=25..100/25%", "--profile-iterations", "9"]
    assert main([*texts, "--", *command]) == 0
    output = capfd.readouterr()
    assert output.out.count("epoch") == 60
    for part in ("profiling stopped: ", "not learned: ", "not controlled: ", "finished after 60 iterations"):
        assert part in output.err, output.err


DEADLINE = ["--resource", "cpu=25..100/25%", "--deadline", "300"]


def test_a_command_with_a_deadline_alone_is_governed_from_its_third_iteration(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url = serve().url
    command = [sys.executable, script(folder, WAITS)]
    assert main([*DEADLINE, "--url", url, "--", *command]) == 0
    output = capfd.readouterr()
    begun = output.out.count("epoch")
    for part in (
        "registered: workload 'train', 3000 iterations",
        f"finished after {begun} iterations",
        "measured before the first",
    ):
        assert part in output.err, output.err
    assert output.err.count("iterations: by lines") == 1  # one process
    (one,) = runs(client)
    assert (one["state"], one["iterations"]) == ("finished", begun)
    assert one["start"]["first_iteration"] <= 3
    spec = client.get("/workloads/train").json()["spec"]
    assert (spec["iterations"], spec["metrics"][0]["target"]) == (3000, 300)
    decisions = [item["decision"] for item in iterations(client, one["id"])]
    assert {decision["reason"]["code"] for decision in decisions} <= {"no_model", "within_noise"}
    assert {decision["policy"] for decision in decisions} == {"model_predictive"}
    assert all(decision["predicted"]["iteration_seconds"]["mean"] > 0 for decision in decisions)
    assert client.get("/jobs").json()["items"] == []  # nothing is fitted or trained
    assert main([*DEADLINE, "--url", url, "--", *command]) == 0  # it is registered now: governed from the start
    assert "measured first" not in capfd.readouterr().err
    assert min(run["start"].get("first_iteration", 0) for run in runs(client)) <= 1


def test_a_command_that_nothing_is_known_of_is_governed_while_a_part_of_its_size_waits(
    serve: Serve, client: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Never(Late):
        def poll(self) -> str:
            return "Deferred: no room"

    monkeypatch.setattr(registry, "factory", lambda _: Never)
    assert main([*DEADLINE, "--url", serve().url, "--", sys.executable, script(folder, WAITS)]) == 0
    (one,) = runs(client)
    assert one["start"]["first_iteration"] <= 3
    requests = [item["report"].get("requested") for item in iterations(client, one["id"])]
    assert requests[0]["allocation"] == {"cpu": 100}
    assert (requests[0]["state"], requests[0]["reason"]) == ("requested", "Deferred: no room")


def test_advice_begins_within_a_command_that_nothing_is_known_of(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, script(folder, WAITS)]
    assert main([*DEADLINE, "--advise", "--url", serve().url, "--", *command]) == 0
    output = capfd.readouterr().err
    assert re.search(r"advising from iteration \d+: nothing is changed", output), output
    assert re.search(r"after \d+ iterations: recommended cpu", output), output
    assert "controlling" not in output
    (one,) = runs(client)
    most = client.get("/workloads/train").json()["spec"]["resources"][0]["maximum"]
    assert {item["report"]["allocation"]["cpu"] for item in iterations(client, one["id"])} == {most}


def test_iterations_that_are_stated_are_governed_from_the_first(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, script(folder, PRINTS), "5", "0.02"]
    texts = [*DEADLINE, "--iterations", "5", "--name", "mine", "--url", serve().url]
    assert main([*texts, "--", *command]) == 0
    assert "measured first" not in capfd.readouterr().err
    (one,) = runs(client)
    assert (one["workload"], one["state"], one["iterations"]) == ("mine", "finished", 5)


def test_a_command_that_ends_before_it_says_how_many_iterations_it_has_is_registered(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, script(folder, PRINTS), "6", "0.02"]
    url = serve().url
    assert main([*DEADLINE, "--url", url, "--", *command]) == 0
    output = capfd.readouterr()
    assert output.out.count("epoch") == 6  # it ran once
    for part in ("the number of iterations is unknown", "is registered: the next start is controlled"):
        assert part in output.err, output.err
    assert runs(client) == []
    assert main([*DEADLINE, "--url", url, "--", *command]) == 0
    assert [run["state"] for run in runs(client)] == ["finished"]


def test_a_service_that_is_lost_before_the_workload_is_registered_ends_no_command(
    serve: Serve, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steward_client.launcher.service.PATIENCE_SECONDS", 0.2)
    there = serve()
    there.plan = lambda _: BEFORE if any("POST /workloads" in observation for observation in there.requests) else None
    command = [sys.executable, script(folder, PRINTS.replace("{n}:", "{n}/{count}:")), "8", "0.02"]
    assert main([*DEADLINE, "--url", there.url, "--", *command]) == 0
    output = capfd.readouterr()
    assert output.out.count("epoch") == 8
    assert output.err.count("not registered: ") == 1


def test_a_workload_that_has_to_be_registered_is_not_made_by_a_deadline(
    serve: Serve, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, script(folder, PRINTS), "6", "0.02"]
    assert main(["--workload", "bussy", "--deadline", "300", "--url", serve().url, "--", *command]) == 2
    output = capfd.readouterr()
    assert (
        "has no workload 'bussy' (there are: busy); --deadline 30m, or --learn, without --workload registers one"
        in output.err
    )
    assert "epoch" not in output.out


def test_a_command_without_iterations_is_told_what_it_took_and_what_is_missing(
    serve: Serve, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url = serve().url
    assert main([*DEADLINE, "--url", url, "--", sys.executable, "-c", "pass"]) == 0
    assert re.search(r"finished after .+ m?s, \d+ % of the deadline of .+, without decisions: ", capfd.readouterr().err)
    assert run(url, "--watch-file", "none/log.csv", "--", sys.executable, "-c", "pass") == 0
    told = capfd.readouterr().err
    assert "--watch-file none/log.csv: folder none does not exist; the command would have to make it" in told
    assert "no iteration was recognised: none/log.csv does not exist" in told
    Path("log.csv").write_text("epoch,loss\n")
    assert run(url, "--watch-file", "log.csv", "--", sys.executable, "-c", "pass") == 0
    assert "no iteration was recognised: log.csv has no new line that tells of one" in capfd.readouterr().err


class Refuses(LocalProcesses):
    """Where the largest allocation can't be set while the command runs."""

    def apply(self, allocation: Allocation) -> Allocation:
        """Refuse it."""
        if allocation["cpu"] == 100:
            raise CannotSet("cpu", allocation["cpu"], "there is no room for it now")
        return super().apply(allocation)


def test_an_allocation_that_is_refused_while_it_is_measured_ends_no_command(
    working: str, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "factory", lambda _: Refuses)
    texts = ["--learn", "--url", working, "--resource", "cpu=25..100/25%", "--deadline", "300", "--budget", "1000"]
    assert main([*texts, "--profile-iterations", "9", "--", sys.executable, script(folder, WAITS)]) == 0
    output = capfd.readouterr()
    assert output.err.count("cpu=100 can't be set: there is no room for it now; the present limits stay") == 1, (
        output.err
    )
    assert f"finished after {output.out.count('epoch')} iterations" in output.err
    measured = client.get("/workloads/train/samples", headers={"accept": "text/csv"}).text.splitlines()[1:]
    assert len({float(line.split(",")[2]) for line in measured}) >= 2


@pytest.mark.slow
def test_quietly_only_the_summary_is_said(
    working: str, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(governed, "WAIT_SECONDS", 250.0)  # trainings hold up whoever asks here
    texts = ["--learn", "--url", working, "--resource", "cpu=25..100/25%", "--budget", "1000", "--quiet"]
    command = [sys.executable, script(folder, PRINTS), "9", "0.1"]
    assert main([*texts, "--profile-iterations", "6", "--", *command]) == 0
    output = capfd.readouterr().err.splitlines()
    assert "the command is started again" in output.pop(0)  # what may overwrite something is no part of the progress
    assert [line.split(" ")[1] for line in output] == [
        "finished",
        "outcome:",
        "reserved:",
        "over",
        "against",
        "decisions:",
        "iterations",
        "run:",
    ], output


HANGS = """
import time
for n in range(2):
    print(f'epoch {n}: loss=1', flush=True)
    time.sleep(0.3)
time.sleep(9)
"""


@pytest.mark.slow
def test_a_command_is_stopped_at_its_cost_and_the_summary_says_so(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = {**SPEC, "name": "priced", "resources": [{**CPU, "price_per_hour": 36.0}]}
    assert client.post("/workloads", json=spec).status_code == 201
    command, url = [sys.executable, script(folder, SLOW)], serve().url  # at most 1 a second, at least 0.2
    assert main(["--workload", "priced", "--url", url, "--max-cost", "1e6", "--", *command]) == 0
    assert main(["--workload", "priced", "--url", url, "--max-cost", "0.25", "--", *command]) == 143
    output = capfd.readouterr().err
    assert re.search(r"the run's cost cap of \$0\.25.*: the command gets SIGTERM", output), output
    assert re.search(r"stopped after \d iterations? in .*cost cap", output), output
    assert "outcome: cap_reached (" in output
    result = {one["start"]["caps"]["cost"]: (one["state"], one["outcome"] == "cap_reached") for one in runs(client)}
    assert result == {1e6: ("finished", False), 0.25: ("cancelled", True)}


def test_a_command_is_stopped_after_its_duration_within_an_iteration_but_not_if_it_is_advised(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begun = time.monotonic()
    assert run(serve().url, "--max-duration", "2s", "--", sys.executable, script(folder, HANGS)) == 143
    assert time.monotonic() - begun < 40
    output = capfd.readouterr().err
    assert "the command has run for 2 s, the most by --max-duration: the command gets SIGTERM; it is killed" in output
    (one,) = runs(client)
    assert (one["state"], one["outcome"]) == ("cancelled", "cap_reached")
    command = [sys.executable, script(folder, PRINTS), "4", "0.3"]
    assert run(serve().url, "--advise", "--max-duration", "500ms", "--", *command) == 0
    assert "recommended: stop, the command has run for" in capfd.readouterr().err


def test_a_command_of_which_nothing_is_known_yet_is_stopped_after_its_duration(
    serve: Serve, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begun, command = time.monotonic(), [sys.executable, script(folder, HANGS)]
    assert main([*DEADLINE, "--max-duration", "1s", "--url", serve().url, "--", *command]) == 143
    assert time.monotonic() - begun < 40
    assert "stopped: the command has run for 1 s, the most by --max-duration" in capfd.readouterr().err


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "10EUR", ""])
@pytest.mark.parametrize("option", ["--max-cost", "--max-duration"])
def test_caps_are_above_0(option: str, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--workload", "busy", f"{option}={text}", "--", "true"]) == 2
    assert f"{option} {text}: " in capfd.readouterr().err
