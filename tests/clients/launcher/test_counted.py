"""Commands that count their iterations in the usual ways are launched; each iteration is counted once."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators.contract import Launch, Stream
from steward_client.launcher.actuators.local import LocalProcesses
from steward_client.launcher.main import main
from steward_client.launcher.summary import savings_lines

from app.database.engine import Database
from tests.app.domain_models.published import publish_model
from tests.clients.launcher.serving import BUSY, script
from tests.clients.launcher.test_launch import Serve, folder, interrupted_once, iterations, run, runs, serve
from tests.clients.test_run import forwarded

pytestmark = pytest.mark.slow  # each starts a command, or several

__all__ = ["folder", "forwarded", "serve"]

HEAD = BUSY.replace("count, size = int(sys.argv[1]), float(sys.argv[2])", "size = 0.03")  # lines are read one by one
TQDM = HEAD + "from tqdm import tqdm\nfrom functools import partial\ntqdm = partial(tqdm, mininterval=0)\n"
ONE_BAR = TQDM + "for n in tqdm(range(5), desc='Epoch'):\n    work()\n"  # "Epoch:  20%|██" is not epoch 20
REDRAWN = """
bar = tqdm(range(5))
for n in bar:
    for _ in range(50):
        bar.refresh()
    work()
"""
NESTED = """
for n in tqdm(range(5)):
    for m in tqdm(range(5), leave=LEAVE):
        work()
"""
INTERLEAVED = """
first, second = tqdm(total=5, position=0), tqdm(total=7, position=1)
for n in range(7):
    second.update()
    work()
    if n < 5:
        first.update()
second.close()
first.close()
"""
OF_EPOCHS = """
for epoch in range(5):
    bar = tqdm(range(3), desc=f'Epoch {epoch}')
    for m in bar:
        work()
        bar.set_postfix(loss=1 / (epoch + m + 1))
    tqdm(range(2), desc='Validating').close()
"""
AGAIN = """
for epoch in range(2):
    for m in tqdm(range(5)):
        work()
"""
ERASED = """
for epoch in range(2):
    for m in (0, 2, 4):  # and the fifth step is not drawn
        print(f'\\r{m * 20}%|##   | {m}/5 [00:00<00:00, 9.9it/s]', end='', file=sys.stderr, flush=True)
        work()
    print('\\r' + ' ' * 40 + '\\r', end='', file=sys.stderr, flush=True)
"""
BROKEN_OFF = """
for epoch in range(2):
    for m in tqdm(range(50)):
        work()
        if m == 3:
            break
"""
DESCRIBED = """
bar = tqdm(range(5))
for n in bar:
    work()
    bar.set_description(f'loss {1 / (n + 1):.2f}')
"""
DESCRIBED_AGAIN = """
for epoch in range(2):
    bar = tqdm(range(5), desc='starts')
    for n in bar:
        work()
        bar.set_description(f'Pass {n}' if n % 2 else 'odd')
        bar.set_postfix(loss=1 / (n + 1), acc=n)
"""
ALIKE = """
for n in range(6):
    for name, done in (('first', n), ('second', min(5, 2 * n))):
        print(f'\\r{name} |#####| {done}/5', end='', file=sys.stderr, flush=True)
        work()
"""
LEFT_NEAR_ITS_END = """
for n in tqdm(range(1000), mininterval=0.1):
    if n == 951:
        break
"""
LOADS_FIRST = """
for m in tqdm(range(3), desc='Loading data'):
    work()
for n in tqdm(range(5), desc='training'):
    work()
"""
RICH = """
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress
with Progress('{task.description}', BarColumn(), MofNCompleteColumn(), console=Console(force_terminal=True)) as bars:
    outer, inner = bars.add_task('train', total=5), bars.add_task('batch', total=15)
    bars.refresh()
    for n in range(5):
        for m in range(3):
            work()
            bars.advance(inner)
        bars.advance(outer)
        bars.refresh()
"""
KERAS = """
for epoch in range(1, 6):
    print(f'Epoch {epoch}/5')
    for m in range(1, 4):
        work()
        print(f'\\r\\x1b[1m{m}/3\\x1b[0m \\x1b[32m━━━━━━━━━━\\x1b[0m 4ms/step - loss: 0.5', end='', flush=True)
    print()
"""
TELLS_FROM_ONE = (
    HEAD
    + """
import time
for n in range(1, 6):
    work()
    print(f'epoch {n}: loss=.5', flush=True)
    time.sleep(0.1)  # long enough for the line to be counted first
    with open(os.environ['STEWARD_ITERATIONS'], 'a') as file:
        file.write(json.dumps({'iteration': n, 'total': 5}) + '\\n')
"""
)
LINES = "for n in range({first}, {last} + 1):\n    work()\n    print({line})\n"


def lines(first: int, last: int, line: str) -> str:
    """Iterations so long that a busy machine does not read two of their lines at once."""
    return HEAD.replace("size = 0.03", "size = 0.2") + LINES.format(first=first, last=last, line=line)


@pytest.mark.parametrize(
    ("text", "count", "reported"),
    [
        pytest.param(ONE_BAR, 5, 5, id="a bar"),
        pytest.param(TQDM + REDRAWN, 5, 5, id="a bar that is redrawn fifty times"),
        pytest.param(TQDM + NESTED.replace("LEAVE", "True"), 5, 5, id="nested bars alike, both stay"),
        pytest.param(TQDM + NESTED.replace("LEAVE", "False"), 5, 5, id="nested bars alike, one is erased"),
        pytest.param(TQDM + INTERLEAVED, 5, 5, id="two bars by turns"),
        pytest.param(TQDM + OF_EPOCHS, 5, 5, id="a bar for each epoch"),
        pytest.param(TQDM + AGAIN, 10, 5, id="a bar that begins again"),
        pytest.param(HEAD + ERASED, 10, 5, id="a bar that is erased before its last step is drawn"),
        pytest.param(TQDM + BROKEN_OFF, 6, 5, id="a bar that is left early"),
        pytest.param(TQDM + DESCRIBED, 5, 5, id="a bar that is described after its first frame"),
        pytest.param(TQDM + DESCRIBED_AGAIN, 10, 5, id="a bar whose description changes, twice"),
        pytest.param(HEAD + ALIKE, 5, 5, id="two bars of one total by turns, the second is faster"),
        pytest.param(TQDM + LOADS_FIRST, 5, 5, id="a bar that loads, then one that trains"),
        pytest.param(HEAD + RICH, 5, 5, id="two bars of rich"),
        pytest.param(HEAD + KERAS, 5, 5, id="Keras"),
        pytest.param(lines(1, 5, "f'{n}/5 loss={1 / n:.2f}'"), 5, 4, id="1/5 to 5/5"),
        pytest.param(lines(1, 5, "f'[{n}/5] loss=0.2 test_acc={n / 9:.2f}'"), 5, 4, id="1/5 and test_acc"),
        pytest.param(lines(1, 5, "f'{n}/5 loss 0.3 eval_loss 0.{n}'"), 5, 4, id="1/5 and eval_loss"),
        pytest.param(lines(1, 3, "f'test {n}/3'") + lines(1, 5, "f'{n}/5 loss 0.3'"), 5, 4, id="test 1/3, then 1/5"),
        pytest.param(lines(0, 4, "f'[{n} / 5]'"), 5, 4, id="0/5 to 4/5"),
        pytest.param(lines(0, 5, "f'epoch {n}/5: loss=0.5'"), 5, 4, id="epoch 0/5 to 5/5"),
        pytest.param(lines(1, 5, "f'\\r{n}/5', end='', flush=True"), 5, 4, id="1/5 to 5/5 drawn over"),
        pytest.param(lines(1, 5, "f'epoch {n}: loss=.5'") + "print('best epoch: 2')", 5, 4, id="a look back"),
        pytest.param(TELLS_FROM_ONE, 5, 4, id="lines, and a file that counts from 1"),
        pytest.param("print('x' * 5_000_000, end='\\r')\n" + ONE_BAR, 5, 5, id="a very long line before"),
    ],
)
def test_each_iteration_is_counted_once(
    serve: Serve,
    client: TestClient,
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    text: str,
    count: int,
    reported: int,
) -> None:
    assert run(serve().url, "--", sys.executable, script(folder, text)) == 0
    printed = capfd.readouterr().err
    assert f"finished after {count} iterations" in printed, printed
    assert ("begins again" in printed) == (count > 5)
    (one,) = runs(client)
    assert (one["state"], one["outcome"], one["iterations"]) == ("finished", "met", 5), printed
    items = iterations(client, one["id"])
    assert len(items) == reported  # one whose beginning nobody saw is not reported
    seconds = [item["report"]["metrics"]["iteration_seconds"] for item in items]
    assert min(seconds) > 2e-6, seconds  # none took no time, however they were drawn


def test_a_name_that_is_used_again_has_two_runs_and_the_address_of_each_comes_first(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url, command = serve().url, [sys.executable, script(folder, ONE_BAR)]
    shown = list[str]()
    for _ in range(2):
        assert run(url, "--deadline", "60m", "--", *command) == 0
        printed = capfd.readouterr().err.splitlines()
        address = re.fullmatch(rf"steward: run: {url}(/ui/runs/\w+)", printed[0])
        assert address, printed
        assert client.get(address[1]).status_code == 200
        shown.append(address[1].rpartition("/")[2])
    assert sorted(shown) == sorted(one["id"] for one in runs(client))


def test_a_bar_of_very_many_steps_is_counted_in_blocks(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = client.get("/workloads/busy").json()["spec"] | {"name": "steps", "iterations": 1000}
    assert client.post("/workloads", json=spec).status_code == 201
    text = TQDM + "for n in tqdm(range(49_999), mininterval=0.5):\n    pass\n"
    assert run(serve().url, "--workload", "steps", "--", sys.executable, script(folder, text)) == 0
    assert "finished after 1000 iterations" in capfd.readouterr().err
    assert [one["iterations"] for one in runs(client)] == [1000]
    assert run(serve().url, "--workload", "steps", "--", sys.executable, script(folder, TQDM + LEFT_NEAR_ITS_END)) == 0
    assert "finished after 951 iterations" in capfd.readouterr().err
    assert sorted(one["iterations"] for one in runs(client)) == [951, 1000]


class Late(LocalProcesses):
    """Where what a command writes arrives at its end."""

    def start(self, launch: Launch) -> None:
        """Keep what it writes."""
        assert launch.output is not None
        self._arrives, self._kept = launch.output, list[tuple[Stream, bytes]]()
        super().start(replace(launch, output=lambda stream, piece: self._kept.append((stream, piece))))

    def close(self) -> None:
        """Hand it over."""
        super().close()
        while self._kept:
            self._arrives(*self._kept.pop(0))


def test_output_that_arrives_at_the_end_counts_before_it_is_said_that_none_was_recognised(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "factory", lambda _: Late)
    url = serve().url
    for text in (ONE_BAR, lines(1, 5, "f'epoch {n}/5: loss=0.5'")):
        assert run(url, "--", sys.executable, script(folder, text)) == 0
        printed = capfd.readouterr().err
        assert "finished after 5 iterations" in printed
        assert "no iteration was recognised" not in printed
    assert [one["iterations"] for one in runs(client)] == [5, 5]


PASSES = """
import pathlib, time
n = 0
while not pathlib.Path('printed').exists():
    n += 1
    print(f'2026-11-27 pass {n}, loss={1 / n}', flush=True)
    time.sleep(0.01)
"""
SOON = "import sys\nfrom steward_client.launcher import main, watched\nwatched.SILENT_SECONDS = 0.2\n"


def test_what_is_not_recognised_is_said_while_the_command_runs_with_a_pattern_that_helps(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url, command = serve().url, [sys.executable, script(folder, PASSES)]
    launch = ["--workload", "busy", "--url", url, "--", *command]
    call = [sys.executable, "-c", SOON + "sys.exit(main.main(sys.argv[1:]))", *launch]
    with subprocess.Popen(call, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as launcher:
        assert launcher.stderr is not None
        printed = next(
            line for line in launcher.stderr if "no iteration was recognised" in line and "--pattern" in line
        )
        Path("printed").touch()  # the command ends only now
        rest = launcher.stderr.read()
    assert launcher.returncode == 0
    assert "no iteration was recognised" not in rest
    match = re.search(r"--pattern '(.+?)' would take lines such as '2026-11-27 pass \d+,", printed)
    assert match, printed
    Path("printed").unlink()
    script(folder, PASSES.replace("while not pathlib.Path('printed').exists()", "while n < 4"))
    assert run(url, "--pattern", match[1], "--", *command) == 0
    assert "finished after 4 iterations" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("raise ValueError('no such file: x')", 1, "exit status 1: ValueError: no such file: x"),
        (
            "class Odd(Exception): pass\ntry:\n    1 / 0\nexcept ArithmeticError:\n    raise Odd",
            1,
            "exit status 1: Odd",
        ),
        ("import traceback\ntry:\n    1 / 0\nexcept ArithmeticError:\n    traceback.print_exc()\n" * 2, 0, None),
        ("import sys\nsys.exit(3)", 3, "exit status 3"),
        ("import os\nos.kill(os.getpid(), 9)", 137, "killed by SIGKILL"),
        ("import os\nos.kill(os.getpid(), 15)", 143, "killed by SIGTERM"),
    ],
)
def test_why_a_command_failed_is_its_runs_reason_and_its_status_is_returned(
    serve: Serve, client: TestClient, folder: Path, text: str, status: int, reason: str | None
) -> None:
    command = [sys.executable, script(folder, f"print('epoch 1/2')\nprint('epoch 2/2', flush=True)\n{text}")]
    url = serve().url
    for _ in range(2):
        assert run(url, "--", *command) == status
    for one in runs(client):
        assert one["state"] == ("failed" if status else "finished")
        assert one["outcome"] == "failed" if status else one["outcome"] != "failed"
        assert reason is None or one["outcome_reason"].endswith(reason)


def test_what_the_actuator_knows_of_the_end_comes_before_what_was_printed(
    serve: Serve, client: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Knowing(LocalProcesses):
        reason = ""

        def wait(self, seconds: float | None) -> int | None:
            status = super().wait(seconds)
            self.reason = "the node was drained" if status else ""
            return status

    text = "print('epoch 1/2')\nprint('epoch 2/2', flush=True)\nraise ValueError('no such file')"
    command = ["--", sys.executable, script(folder, text)]
    for actuator, reason in (
        (Knowing, "exit status 1: the node was drained"),
        (LocalProcesses, "exit status 1: ValueError: no such file"),
    ):
        monkeypatch.setattr(registry, "create", lambda _name, ranges, _options, result=actuator: result(ranges))
        assert run(serve().url, *command) == 1
        assert max(runs(client), key=lambda one: one["created_at"])["outcome_reason"] == reason


LEARN = ["--learn", "--resource", "cpu=25..100/25%", "--profile-iterations", "9"]
STARTS = "open('starts', 'a').write('x')\nimport sys\nprint('STARTED', file=sys.stderr, flush=True)\n"


def test_a_second_start_is_announced_before_it_and_can_be_prevented(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steward_client.launcher.learn.learning.RUNS", 2)
    url, command = serve().url, [sys.executable, script(folder, STARTS + lines(1, 4, "f'epoch {n}/4: loss=.5'"))]
    assert run_learning(url, "--no-restart", "--", *command) == 0
    assert Path("starts").read_text() == "x"
    assert "3 of 9 iterations are measured: the next --learn goes on (--no-restart)" in capfd.readouterr().err
    script(folder, STARTS + "sys.exit(5)")  # so that nothing is learned here, where nobody would do the work
    assert run_learning(url, "--", *command) == 5
    script(folder, STARTS + lines(1, 2, "f'epoch {n}/4: loss=.5'") + "sys.exit(n and os.path.getsize('starts') - 3)")
    capfd.readouterr()
    assert run_learning(url, "--", *command) == 1
    printed = capfd.readouterr().err
    first, _, second = printed.partition("it is started again (start 2 of 2 at most; --no-restart prevents that)")
    assert (first.count("STARTED"), second.count("STARTED")) == (1, 1), printed
    assert runs(client) == []


def run_learning(url: str, *text: str) -> int:
    return main(["--url", url, *LEARN, *text])


def test_a_command_in_which_nothing_is_recognised_keeps_its_status(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url = serve().url
    for name in ("one", "two"):
        assert run_learning(url, "--name", name, "--", sys.executable, "-c", "print('hello')") == 0
        printed = capfd.readouterr()
        assert (printed.out, printed.err.count("no iteration was recognised")) == ("hello\n", 1), printed.err
    assert run(url, "--", sys.executable, "-c", "print('hello')") == 0
    assert [one["workload"] for one in runs(client)] == ["busy"]


def test_ctrl_c_while_it_is_measured_reaches_the_command_as_such(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = "import sys, time\ntry:\n    open('ready', 'w').close()\n    time.sleep(60)\nexcept KeyboardInterrupt:\n"
    command = [sys.executable, script(folder, text + "    sys.exit(9)\n")]
    url = serve().url
    with interrupted_once(Path("ready")):
        assert run_learning(url, "--", *command) == 9
    printed = capfd.readouterr().err
    assert "SIGINT: passed on to the command; it is killed after 10 s, press Ctrl-C again to kill it now" in printed
    assert printed.endswith("steward-run: interrupted by SIGINT\n")
    assert runs(client) == []


def test_messages_on_a_terminal_stand_on_lines_of_their_own(serve: Serve, folder: Path) -> None:
    main, line = pty.openpty()
    launch = ["--workload", "busy", "--url", serve().url, "--", sys.executable, script(folder, ONE_BAR)]
    module = [sys.executable, "-m", "steward_client.launcher.main", *launch]
    with subprocess.Popen(module, stdout=line, stderr=line, stdin=subprocess.DEVNULL) as launcher:
        os.close(line)
        written = _all(main)
    assert launcher.returncode == 0
    text = written.decode()
    assert "steward: finished after 5 iterations" in text
    before = [text[: match.start()][-1] for match in re.finditer("steward: ", text) if match.start()]
    assert set(before) <= {"\n", "J"}, text  # after a line's end, or where a bar was erased


def _all(descriptor: int) -> bytes:
    """What is written to a terminal until its last writer has gone."""
    rows = b""
    while True:
        try:
            piece = os.read(descriptor, 65_536)
        except OSError:  # EIO: nobody has it any more
            piece = b""
        if not piece:
            os.close(descriptor)
            return rows
        rows += piece


def test_a_summary_says_cost_beside_the_largest_allocation_as_far_as_that_was_measured(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spec: dict[str, Any] = client.get("/workloads/busy").json()["spec"] | {"name": "most"}
    spec["resources"][0] |= {"initial": 100}
    assert client.post("/workloads", json=spec).status_code == 201
    url, command = serve().url, [sys.executable, script(folder, ONE_BAR)]
    for name in ("busy", "most"):
        assert run(url, "--workload", name, "--", *command) == 0
        printed = capfd.readouterr().err
        (one,) = (match for match in runs(client) if match["workload"] == name)
        at_most = sum(item["report"]["allocation"]["cpu"] == 100 for item in iterations(client, one["id"]))
        result = re.search(r"cost vs. the largest allocation \(cpu 100 %\): (.*)", printed)
        assert result, printed
        if at_most == 5:
            assert result[1] == "the same, every iteration ran at it"
        elif at_most < 2:
            once = "only 1" if at_most else "no"
            assert result[1] == f"unknown, {once} iteration ran at it"
        else:
            assert re.fullmatch(
                rf"\d+% (less|more) than about .*, estimated from {at_most} iterations at it", result[1]
            )


def test_a_model_says_what_was_saved_beside_allocations_that_a_run_never_had(
    serve: Serve, database: Database, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url, command = serve().url, [sys.executable, script(folder, ONE_BAR)]
    for version, high in ((1, 10.0), (2, 100.0)):
        assert publish_model(database, "busy", seen_high=high) == version
        assert run(url, "--policy", "hold", "--", *command) == 0  # at the least, where the workload begins
        printed = capfd.readouterr().err
        saved = runs(client)[0]["savings"]
        for name, what in (("largest", "largest"), ("best_fixed", "best fixed, known only afterwards")):
            units = saved[name]["allocation"]["cpu"]
            value = 0.0 if saved[name]["saved"] is None else saved[name]["saved"]["value"]
            result = (
                saved[name]["unmeasured"] or "cost the same"
                if abs(value) < 1e-12
                else "saved "
                if value > 0
                else "cost "
            )
            assert f"against cpu {units:g} % ({what}): {result}" in printed, printed
        assert (saved["largest"]["saved"] is None) == (version == 1)
        assert "over 5 reported iterations, by the model, against" in printed
        assert "recommendations" not in printed


OVER = "over 7 reported iterations, by the model,"


def test_savings_are_said_in_one_direction_with_their_interval_and_without_rounding() -> None:
    def of(value: float, low: float | None, high: float | None, cost: float = 10.0) -> dict[str, Any]:
        numbers = dict(zip(("value", "low", "high"), (value, low, high), strict=True))
        return {"allocation": {"cpu": 100.0}, "cost": {"value": cost}, "saved": numbers, "meets_targets": 0.25}

    one = {
        "iterations": 7,
        "cost": 10.0,
        "level": 0.9,
        "largest": of(-3.0, -4.0, 1.0),
        "best_fixed": of(-1e-17, -1e-17, 1e-17) | {"meets_targets": None},
        "advised": of(-2.0, -3.0, -1.0),
    }
    met = "; targets met by 25 % of models"
    assert savings_lines(one, {"cpu": "%"}, "$") == [
        f"{OVER} against cpu 100 % (largest): cost $3.00 more (30 %), 90 % of models: -$1.00 to $4.00{met}",
        "against cpu 100 % (best fixed, known only afterwards): cost the same",
        f"recommendations, applied, would have saved $2.00, 90 % of models: $1.00 to $3.00{met}",
    ]
    small = savings_lines({**one, "largest": of(-0.471, -0.09996, 0.0123), "advised": None}, {"cpu": "%"}, "$")[0]
    assert f"cost $0.47 more (5 %), 90 % of models: -$0.0123 to $0.10{met}" in small
    free = {**one, "cost": 0.0, "largest": of(0.0, 0.0, -0.0, 0.0), "advised": None}
    assert savings_lines(free, {}, "EUR")[0] == f"{OVER} against cpu 100 (largest): cost the same{met}"


def test_advice_changes_nothing_and_says_what_it_would_have_saved(
    serve: Serve, database: Database, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url, command = serve().url, [sys.executable, script(folder, ONE_BAR)]
    with_model = (False, True)
    for known in with_model:
        if known:
            publish_model(database, "busy")
        assert run(url, "--advise", "--", *command) == 0
        printed, result = capfd.readouterr().err, runs(client)[0]
        assert "advising: nothing is changed" in printed
        assert result["start"]["mode"] == "advise"
        reported = [item["report"]["allocation"]["cpu"] for item in iterations(client, result["id"])]
        assert set(reported) == {100.0}
        assert "recommended cpu" in printed
        if known:
            would = result["savings"]["advised"]["saved"]["value"]
            word = "cost the same" if abs(would) < 1e-12 else "saved" if would < 0 else "cost"
            assert f"recommendations, applied, would have {word}" in printed, printed
            assert "against cpu 100 % (largest): cost the same" in printed, printed
        else:
            assert "savings of the recommendations are unknown: no model is fitted" in printed
        assert "recommendations: 5" in printed
    assert main(["--url", url, "--advise", "--learn", "--", *command]) == 2
    assert "--advise changes nothing, --learn measures by changes" in capfd.readouterr().err


class Elsewhere(LocalProcesses):
    shares_files = False
    passes_output = True


def test_advice_to_a_command_elsewhere_is_by_its_output_and_it_gets_no_run_to_follow(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "create", lambda _name, ranges, _options: Elsewhere(ranges))
    printed = "import os\nprint('printed', sorted(one for one in os.environ if one.startswith('STEWARD_')))\n"
    assert run(serve().url, "--advise", "--", sys.executable, script(folder, printed + ONE_BAR)) == 0
    output = capfd.readouterr()
    before = sorted(one for one in os.environ if one.startswith("STEWARD_"))
    assert f"printed {before}" in output.out, "neither run nor token"
    assert "iterations are read from its output alone" in output.err
    (one,) = runs(client)
    assert (one["state"], one["start"]["mode"], one["iterations"]) == ("finished", "advise", 5)
    assert {item["report"]["allocation"]["cpu"] for item in iterations(client, one["id"])} == {100.0}


def test_options_are_refused_only_where_they_would_have_no_effect(
    serve: Serve, client: TestClient, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(Elsewhere):
        passes_output = False

    monkeypatch.setattr(registry, "create", lambda _name, ranges, _options: Silent(ranges))
    logs = "import csv\nfor n in range(5):\n    work()\n    print(n, file=open('log.csv', 'a'), flush=True)\n"
    command = ["--", sys.executable, script(folder, HEAD + logs)]
    assert run(serve().url, "--advise", *command) == 2
    assert "iterations can't be seen, as with these options" in capfd.readouterr().err
    assert runs(client) == []
    assert run(serve().url, "--queue-timeout", "5m", *command) == 2
    assert "--queue-timeout with actuator local: it knows of no queue; slurm is" in capfd.readouterr().err
    assert runs(client) == []
    assert run(serve().url, "--advise", "--watch-file", "log.csv", *command) == 0
    assert [(one["state"], one["start"]["mode"]) for one in runs(client)] == [("finished", "advise")]
