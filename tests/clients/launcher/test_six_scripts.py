"""Six scripts as users have them, launched by ``steward run`` in processes of their own, against real services."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import psutil
import pytest
import steward_client as steward

from tests.servers import StewardServer, clean_environment, free_port, stop, wait_until

SKLEARN = """
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
x, y = load_digits(return_X_y=True)
model = SGDClassifier(loss="log_loss", random_state=0)
for epoch in range(1, 13):
    for part in np.array_split(np.random.default_rng(epoch).permutation(len(y)), 10):
        model.partial_fit(x[part], y[part], classes=np.arange(10))
    print(f"epoch {epoch}/12 - accuracy: {model.score(x, y):.3f}")
"""
SHELL = """
i=0
while [ $i -lt 9 ]; do
  i=$((i+1))
  sleep 0.3
  echo "processed file $i of 9"
done
"""
PYTORCH = """
import torch
from tqdm import tqdm
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x, y = torch.randn(512, 64), torch.randint(0, 10, (512,))
for _ in (bar := tqdm(range(15), desc="training")):
    for _ in range(60):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    bar.set_postfix(loss=f"{loss.item():.3f}")
print("saved")
"""
SILENT = "import time\ntime.sleep(40)\n"
UNUSUAL = """
import time
for n in range(1, 21):
    print(f"finished pass number {n}, score {1 / n:.3f}")
    time.sleep(2)
"""
EPOCHS = """
import os, signal, sys, time
for epoch in range(1, int(sys.argv[1]) + 1):
    time.sleep(0.1)
    print(f"Epoch {epoch}/{sys.argv[1]} loss={1 / epoch:.3f}")
"""
CRASHING = EPOCHS + "    if epoch == 9:\n        raise MemoryError('tried to allocate 2 GiB')\n"
EXITS = EPOCHS + "sys.exit(3)\n"
KILLED = EPOCHS + "    if epoch == 9:\n        os.kill(os.getpid(), signal.SIGKILL)\n"
STUBBORN = "import signal\nsignal.signal(signal.SIGINT, lambda *_: print('saving', flush=True))\n" + EPOCHS
TIDY = "import signal, sys\nsignal.signal(signal.SIGINT, lambda *_: sys.exit(0))\n" + EPOCHS


@dataclass
class Launch:
    """A launcher in a session, with a home and a folder of its own."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def out(self) -> str:
        """What the command has written so far."""
        return (self.folder / "out").read_text()

    @property
    def output(self) -> str:
        """What the launcher has said so far, and the command's errors."""
        return (self.folder / "said").read_text()

    def send(self, number: int) -> None:
        """To all of the foreground, as a terminal does."""
        os.killpg(self.process.pid, number)

    def status(self, seconds: float = 120) -> int:
        """Of its end, in which nothing that was started from its folder is left."""
        status = self.process.wait(seconds)
        wait_until(lambda: not self.left(), 20, f"the end of {self.left()}")
        return status

    def left(self) -> list[psutil.Process]:
        """Processes that were started from its folder."""
        process_iter = psutil.process_iter(["cmdline"])
        return [one for one in process_iter if str(self.folder) in " ".join(one.info["cmdline"] or [])]


Start = Callable[..., Launch]


@pytest.fixture
def start(tmp_path: Path, request: pytest.FixtureRequest) -> Start:
    """Starts a launcher on a script: ``start(name, text, url, options…, after=[arguments of the script])``."""

    def run(name: str, text: str, url: str, *options: str, after: tuple[str, ...] = ()) -> Launch:
        folder = tmp_path / name
        folder.mkdir()
        shell = text == SHELL
        file = folder / (f"{name}.sh" if shell else f"{name}.py")
        file.write_text(text)
        command = ["sh" if shell else sys.executable, str(file), *after]
        home = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        launcher = [sys.executable, "-m", "app.cli", "run", "--url", url, *options, "--", *command]
        with (folder / "out").open("wb") as out, (folder / "said").open("wb") as result:
            process = subprocess.Popen(
                launcher, stdout=out, stderr=result, cwd=folder, env=clean_environment(home), start_new_session=True
            )
        request.addfinalizer(lambda: stop(process))
        return Launch(process, folder)

    return run


def free(url: str) -> bool:
    with socket.socket() as requested:
        return requested.connect_ex((str(urlsplit(url).hostname), urlsplit(url).port or 80)) != 0


@pytest.mark.slow
def test_two_scripts_at_once_share_a_service_whose_pages_can_be_read_later(start: Start, tmp_path: Path) -> None:
    url, data = f"http://127.0.0.1:{free_port()}", tmp_path / "their data"
    options = ["--deadline", "2m", "--resource", "cpu=50..100/25%", "--data", str(data)]
    both = [start("digits", SKLEARN, url, *options), start("files", SHELL, url, *options)]
    assert [one.status() for one in both] == [0, 0], [one.output for one in both]
    digits, files = both
    assert digits.out.count("accuracy") == 12
    assert files.out == "".join(f"processed file {n} of 9\n" for n in range(1, 10))
    runs = list[str]()
    for launched, count in ((digits, 12), (files, 9)):
        matches = re.findall(rf"run: {url}/ui/runs/(\w+)", launched.output)
        assert len(matches) == 2, launched.output  # when decisions begin, and in the summary
        runs.append(matches[-1])
        for part in (
            f"dashboard: {url}",
            "controlling from iteration",
            f"finished after {count} iterations in ",
            "of the",
        ):
            assert part in launched.output, launched.output
        assert "outcome: met" in launched.output
        compared = r"(cost vs\. the largest allocation \(cpu 100 %\): |against cpu 100 % \(largest\): )\w+"
        assert re.search(compared, launched.output), launched.output
    assert sum("starting a service at" in one.output for one in both) == 1
    assert free(url)

    (later,) = {line for one in both for line in re.findall(r"\(later: steward (serve .+)\)", one.output)}
    command = [sys.executable, "-m", "app.cli", *shlex.split(later)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment({}), cwd=tmp_path
    ) as served:
        try:
            wait_until(lambda: not free(url), 60, "the service as the launcher said")
            service = steward.Steward(url=url)
            assert {row["id"]: row["outcome"] for row in service.runs()} == dict.fromkeys(runs, "met")
            assert sorted(service.workloads) == ["digits", "files"]
            assert [row["workload"] for row in service.workloads["files"].runs()] == ["files"]
            for run in runs:
                assert urlopen(f"{url}/ui/runs/{run}", timeout=60).status == 200
        finally:
            stop(served)


@pytest.mark.slow
def test_every_end_of_a_script_is_the_launchers_and_stands_at_its_run(
    start: Start, steward_factory: Callable[..., StewardServer]
) -> None:
    url = steward_factory().url
    options = ["--deadline", "5m", "--resource", "cpu=50..100/50%", "--iterations"]
    ends = {
        "crash": start("crash", CRASHING, url, *options, "20", after=("20",)),
        "exits": start("exits", EXITS, url, *options, "12", after=("12",)),
        "killed": start("killed", KILLED, url, *options, "20", after=("20",)),
        "over": start("over", EPOCHS, url, *options, "12", after=("13",)),
        "once": start("once", EPOCHS, url, *options, "900", after=("900",)),
        "tidy": start("tidy", TIDY, url, *options, "900", after=("900",)),
        "twice": start("twice", STUBBORN, url, *options, "900", after=("900",)),
        "ended": start("ended", EPOCHS, url, *options, "900", after=("900",)),
    }
    for name, number in (("once", signal.SIGINT), ("tidy", signal.SIGINT), ("ended", 15), ("twice", signal.SIGINT)):
        wait_until(lambda one=ends[name]: "Epoch 5/" in one.out, 120, f"iterations of {name}")  # type: ignore[misc]
        ends[name].send(number)
    wait_until(lambda: "saving" in ends["twice"].out, 60, "the first Ctrl-C")
    ends["twice"].send(signal.SIGINT)
    expected = {
        "crash": (1, "failed", "exit status 1: MemoryError: tried to allocate 2 GiB"),
        "exits": (3, "failed", "exit status 3"),
        "killed": (137, "failed", "killed by SIGKILL"),
        "over": (0, "met", ""),
        "once": (130, "cancelled", "Ctrl-C (SIGINT)"),
        "tidy": (0, "cancelled", "Ctrl-C (SIGINT)"),
        "twice": (137, "cancelled", "Ctrl-C (SIGINT)"),
        "ended": (143, "cancelled", "SIGTERM"),
    }
    for name, (status, outcome, reason) in expected.items():
        assert ends[name].status() == status, ends[name].output
        (row,) = steward.runs(name, url=url)
        assert (row["outcome"], reason in (row["outcome_reason"] or "")) == (outcome, True), row
        assert ends[name].output.rstrip().count(f"run: {row['url']}") >= 1, ends[name].output
        assert len(steward.Steward(url=url).run(row["id"]).history()) == row["iterations"] - 1  # the first isn't timed
    assert "finished after 13 iterations (workload 'over' has 12) in " in ends["over"].output
    assert (
        "passed on to the command; it is killed after 10 s, press Ctrl-C again to kill it now" in ends["twice"].output
    )
    assert "steward: the command is killed" in ends["twice"].output
    assert "a second signal to kill it now" in ends["ended"].output


@pytest.mark.slow
def test_a_progress_bar_of_a_pytorch_loop_is_counted(
    start: Start, steward_factory: Callable[..., StewardServer]
) -> None:
    url = steward_factory().url
    launched = start("net", PYTORCH, url, "--deadline", "10m", "--resource", "cpu=50..100/50%")
    assert launched.status(300) == 0, launched.output
    assert launched.out == "saved\n"
    assert "iterations: by the progress bar 'training' of 15, each of its steps" in launched.output
    assert "finished after 15 iterations in " in launched.output
    (row,) = steward.runs("net", url=url)
    assert (row["state"], row["iterations"]) == ("finished", 15)


@pytest.mark.slow
def test_silent_and_unusual_scripts_are_told_what_is_missing_while_they_run(
    start: Start, steward_factory: Callable[..., StewardServer]
) -> None:
    url = steward_factory().url
    silent, unusual = (start(name, text, url, "--deadline", "9m") for name, text in (("s", SILENT), ("u", UNUSUAL)))
    hint = "no iteration was recognised after 30"
    for launched in (silent, unusual):
        wait_until(lambda one=launched: hint in one.output, 120, hint)  # type: ignore[misc]
        assert launched.process.poll() is None
    assert "it has written no line yet; print lines like 'Epoch 3/90'" in silent.output
    pattern = re.search(
        r"--pattern '(.+?)' would take lines such as 'finished pass number 1, score 1.000'", unusual.output
    )
    assert pattern, unusual.output
    for launched in (silent, unusual):
        assert launched.status() == 0
        assert re.search(
            r"the command finished after .+ s, .+ of the deadline of 9 min, without decisions: "
            r"print a line per iteration.+\n$",
            launched.output,
        ), launched.output
        assert launched.output.count("no iteration was recognised") == 1
    began = time.monotonic()
    text = UNUSUAL.replace("time.sleep(2)", "time.sleep(0.1)")
    again = start("again", text, url, "--deadline", "9m", "--iterations", "20", "--pattern", pattern[1])
    assert again.status() == 0
    assert "finished after 20 iterations in " in again.output
    assert time.monotonic() - began < 60
    assert [row["workload"] for row in steward.runs(url=url)] == ["again"]
