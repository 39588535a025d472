"""The application of a test on a real socket, whose jobs are done at once, and scripts to be launched."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx

from app.database.engine import Database
from app.settings import Settings
from tests.clients.test_run import Handler

BUSY = """
import json, os, sys, time
count, size = int(sys.argv[1]), float(sys.argv[2])
def work():
    end = time.process_time() + size
    while time.process_time() < end:
        sum(range(500))
"""
PRINTS = BUSY + "for n in range(count):\n    work()\n    print(f'epoch {n}: loss={1 / (n + 1):.3f}')\n"
TELLS = (
    BUSY
    + """
for n in range(count):
    work()
    said = json.load(open(os.environ['STEWARD_ALLOCATION']))
    assert said['iteration'] <= n + 1 and set(said['allocation']) == {'cpu'}, said
    with open(os.environ['STEWARD_ITERATIONS'], 'a') as file:
        file.write(json.dumps({'iteration': n, 'metrics': {'iteration_seconds': size}}) + '\\n')
"""
)
WAITS = """
import json, os, time
governed = 0
for n in range(3000):
    time.sleep(0.03)
    said = json.load(open(os.environ['STEWARD_ALLOCATION']))
    assert said['iteration'] <= n + 1, said
    governed += said['reason'] not in ('the first allocation', 'to be measured')
    print(f'epoch {n}/3000: loss=1')
    if governed == 4:
        break
"""
"""Goes on until some of its iterations were decided for."""
REPORTS = (
    BUSY
    + """
import urllib.request
assert 'STEWARD_ITERATIONS' not in os.environ
for n in range(count):
    work()
    body = json.dumps({'allocation': {'cpu': 20}, 'metrics': {'iteration_seconds': size}}).encode()
    url = os.environ['STEWARD_URL'] + '/runs/' + os.environ['STEWARD_RUN'] + f'/iterations/{n}'
    headers = {'content-type': 'application/json', 'authorization': 'Bearer ' + os.environ['STEWARD_TOKEN']}
    urllib.request.urlopen(urllib.request.Request(url, body, headers, method='PUT')).close()
    print(f'epoch {n}: loss=1')
"""
)
SPINS = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (60, 60))\nwhile True: pass"
"""Uses all the CPU that it gets; the kernel ends one that a test has left."""
FAMILY = f"""
import os, subprocess, sys, time
spin = {SPINS!r}
children = [subprocess.Popen([sys.executable, '-S', '-c', spin])]
between = os.fork()
if not between:
    os.setsid()
    if not os.fork():
        os.execv(sys.executable, [sys.executable, '-S', '-c', spin])
    os._exit(0)
os.waitpid(between, 0)
open('ready', 'w').close()
print('ready', flush=True)
exec(spin)
"""
CPU = {"name": "cpu", "unit": "%", "minimum": 20, "maximum": 100, "step": 20, "max_steps": 2}
SPEC = {
    "name": "busy",
    "kind": "iterative",
    "resources": [CPU],
    "metrics": [{"name": "iteration_seconds", "unit": "s", "target": 10, "goal": "at_most", "scope": "run"}],
    "iterations": 5,
}


def script(folder: Path, text: str, name: str = "train.py") -> str:
    """A script; its path."""
    file = folder / name
    file.write_text(text)
    return str(file)


def worked(forwarded: Handler, database: Database, settings: Settings) -> Handler:
    """Answers requests; a job that is queued is done before its id is known, a training by the least of agents."""
    from workers.tasks.base import perform
    from workers.tasks.online import train
    from workers.tasks.trained import fit

    tasks: dict[str, Callable[..., object]] = {"models": fit, "agents": train}

    def answer(request: httpx.Request) -> httpx.Response:
        noun = request.url.path.rpartition("/")[2]
        if request.method == "POST" and noun == "agents":
            least = json.loads(request.content) | {"algorithm": "tabular_q", "seeds": 1}
            request = httpx.Request("POST", request.url, json=least)
        handler = forwarded(request)
        task = tasks.get(noun)
        if request.method == "POST" and task is not None and handler.status_code == httpx.codes.ACCEPTED:
            perform(database, settings, handler.json()["id"], task)  # type: ignore[arg-type]
        return handler

    return answer
