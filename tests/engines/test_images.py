"""The images of the Dockerfile, and ``docker-compose.yml`` with them. Building takes minutes: ``make engines``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.engines.composed import ROOT, Composed
from tests.engines.dockerd import BASE, Dockerd
from tests.engines.required import require
from tests.faults.reporting import Reporting
from tests.integration.caller import Caller
from tests.servers import free_port, stop, wait_until

BUILD_SECONDS = 3600
LARGEST = {"steward": 350, "steward-worker": 1600, "steward-scaling": 350}
"""Megabytes (10⁶ bytes) of each image without its base."""
STANDINS = Path(__file__).parent / "standins"
NAMES = {"steward": "api", "steward-worker": "worker"}
SCALING = "steward-scaling"
"""The image `api` with the extra for autoscalers."""

pytestmark = [pytest.mark.long, pytest.mark.timeout(2 * BUILD_SECONDS)]


@contextmanager
def wheels_of_torch() -> Iterator[str]:
    """A page of links to torch's wheel, if it lies in a folder of this machine; else the Dockerfile's own."""
    folder = os.environ.get("PIP_FIND_LINKS", "")
    if not Path(folder).is_dir():
        yield ""
        return
    port = free_port()
    server = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", folder, str(port)]
    process = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        stop(process)


@pytest.fixture(scope="module")
def images(docker: Dockerd) -> Dockerd:
    """The daemon, with both images and with stand-ins for those of PostgreSQL and Redis."""
    with wheels_of_torch() as links:
        torch = ["--build-arg", f"TORCH={links}"] if links else []
        more = {"steward": [], "steward-worker": torch, SCALING: ["--build-arg", "EXTRAS=scaling"]}
        for name, arguments in more.items():
            target = NAMES.get(name, "api")
            built = ["build", "--network", "host", "--target", target, "--tag", name, *arguments, str(ROOT)]
            docker.docker(*built, seconds=BUILD_SECONDS)
    servers = [part for name in ("postgres:17", "redis:7") for part in ("--tag", name)]
    docker.docker(
        "build", "--network", "host", *servers, str(Path(__file__).parent / "standins"), seconds=BUILD_SECONDS
    )
    return docker


def test_images_are_no_larger_than_they_must_be(images: Dockerd) -> None:
    names = (BASE, *NAMES, SCALING)
    sizes = {name: int(images.docker("image", "inspect", "--format", "{{.Size}}", name)) for name in names}
    for name in (*NAMES, SCALING):
        own, whole = (sizes[name] - sizes[BASE]) / 10**6, sizes[name] / 10**6
        print(f"{name}: {own:.0f} MB, {whole:.0f} MB with its base")
        assert own <= LARGEST[name]


@pytest.mark.parametrize("name", NAMES)
def test_nobody_is_root_and_the_api_has_no_torch(images: Dockerd, name: str) -> None:
    program = (
        "import importlib.util, os, pathlib; pathlib.Path('/data/x').touch(); "
        "print(os.getuid(), os.access('/', os.W_OK), importlib.util.find_spec('torch') is not None)"
    )
    assert images.docker("run", "--rm", name, "python", "-c", program) == f"10001 False {name == 'steward-worker'}"


def test_the_adapter_serves_from_the_image_with_its_extra_and_says_what_the_other_lacks(images: Dockerd) -> None:
    asks = (
        "import json, sys, time, urllib.error, urllib.request as http\n"
        "for _ in range(300):\n"
        "  try: sys.exit(print(json.load(http.urlopen('http://127.0.0.1:6443/healthz'))))\n"
        "  except urllib.error.URLError: time.sleep(1)\n"
    )
    output = images.docker("run", "--rm", SCALING, "sh", "-c", f'steward adapter & exec python -c "{asks}"')
    assert "{'status': 'ok'}" in output
    assert "isn't installed" in images.docker("run", "--rm", "steward", "steward", "adapter", check=False)


def test_an_extra_that_is_not_there_ends_the_build(images: Dockerd) -> None:
    options = ["--target", "api", "--build-arg", "EXTRAS=scalling"]
    built = images.docker("build", "--network", "host", *options, str(ROOT), seconds=BUILD_SECONDS, check=False)
    assert "EXTRAS=scalling: no such extra: scalling; there are: archive, worker, " in built


@pytest.fixture(scope="module")
def stack(images: Dockerd) -> Iterator[Composed]:
    """The file's services, with three workers."""
    result = Composed(images, {"STEWARD_PORT": str(free_port())})
    try:
        result.up({"worker": 3})
        yield result
    finally:
        result.down()


@pytest.fixture(scope="module")
def key(stack: Composed) -> dict[str, str]:
    """What is sent of the first key, made as the file says."""
    key = stack.execute(stack.containers["api"][0], "steward", "key", "create", "--scopes", "admin")
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture(scope="module")
def url(stack: Composed) -> str:
    """The published address."""
    return f"http://{stack.resolved(stack.services['api']['ports'][0]).rpartition(':')[0]}"


def test_a_workload_goes_through_fit_training_and_run(stack: Composed, url: str, key: dict[str, str]) -> None:
    caller = Caller(url, "learned")
    with caller.http:
        assert caller.http.get("/workloads").status_code == 401
        caller.http.headers.update(key)
        assert caller.fitted()["result"] == {"model": 1}
        job = caller.wait(caller.train(algorithm="tabular_q", seeds=1, budget=100_000), 900)
        assert job["state"] == "succeeded", job
        run = caller.post("/runs", json={"workload": "learned"})
        for number in range(30):
            body = {"allocation": run["decision"]["allocation"], "metrics": {"iteration_seconds": 5.0}}
            answer = caller.http.put(f"/runs/{run['id']}/iterations/{number}", json=body)
            assert answer.status_code == 201, answer.text
        assert caller.http.patch(f"/runs/{run['id']}", json={"state": "finished"}).json()["outcome"] == "met"
    workers = [
        stack.execute(one, "steward", "worker", "--check", "&&", "echo", "yes") for one in stack.containers["worker"]
    ]
    assert [one.splitlines()[-1] for one in workers] == ["yes"] * 3


def test_each_container_is_killed_in_turn_and_no_report_is_lost(stack: Composed, url: str, key: dict[str, str]) -> None:
    with Reporting(url, 2, key) as reporting:
        for name in ("worker", "redis", "api", "postgres"):
            stack.crash(stack.containers[name][0])
            stack.wait(stack.containers[name][0])
            reporting.wait_for_more(3)
    reporting.check()
    print(f"acknowledged: {sum(reporting.counts.values())} reports; statuses: {sorted(reporting.statuses)}")
    caller = Caller(url, "learned")
    with caller.http:
        caller.http.headers.update(key)
        assert caller.wait(caller.fit(), 300)["state"] == "succeeded"


NGINX = """
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  log_format upstreams '$upstream_addr $status';
  access_log {folder}/upstreams.log upstreams;
  upstream steward {{ {servers} }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://steward;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_next_upstream error timeout;
    }}
  }}
}}
"""


@contextmanager
def nginx(folder: Path, addresses: list[str]) -> Iterator[str]:
    """A real nginx that balances between the addresses; gives its URL."""
    port = free_port()
    servers = " ".join(f"server {one} max_fails=1 fail_timeout=2s;" for one in addresses)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, servers=servers, port=port))
    process = subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf"), "-g", "daemon off; user root;"])
    try:
        wait_until(lambda: (folder / "pid").exists(), what="nginx")
        yield f"http://127.0.0.1:{port}"
    finally:
        stop(process)


def test_two_of_the_api_behind_nginx_serve_one_run(stack: Composed, key: dict[str, str], tmp_path: Path) -> None:
    require(["nginx"])
    stack.wait(stack.start("api"))
    addresses = [f"{stack.address(one)}:8080" for one in stack.containers["api"]]
    with nginx(tmp_path, addresses) as balanced:
        assert httpx.get(f"{balanced}/readyz", timeout=60).json()["ready"] is True
        with Reporting(balanced, 2, key) as reporting:
            reporting.wait_for_more(10)
            stack.crash(stack.containers["api"][0])
            reporting.wait_for_more(10)
            stack.wait(stack.containers["api"][0])
            reporting.wait_for_more(10)
        reporting.check()
        print(f"acknowledged: {sum(reporting.counts.values())} reports; statuses: {sorted(reporting.statuses)}")
        served = [
            line.split()[0] for line in (tmp_path / "upstreams.log").read_text().splitlines() if line.endswith("200")
        ]
    assert set(addresses) <= set(served)
