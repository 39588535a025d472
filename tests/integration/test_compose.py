"""docker-compose.yml without Docker: its commands, settings and health checks, run on real servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
import yaml
from sqlalchemy import make_url

from app.installed import DISTRIBUTION
from tests.integration.caller import WORKLOAD, Caller
from tests.servers import (
    PostgresServer,
    clean_environment,
    free_port,
    postgres_program,
    redis_program,
    redis_server,
    stop,
    wait_until,
)

ROOT = Path(__file__).parents[2]
CHECK_SECONDS = 1.0
NO_LINKS = {"PIP_CONFIG_FILE": os.devnull} | {n: v for n, v in os.environ.items() if not n.startswith("PIP_")}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The file, parsed."""
    parsed: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return parsed


def resolved(text: str, variables: dict[str, str]) -> str:
    """`${NAME:-default}` as compose reads it."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda m: variables.get(m[1], m[2]), str(text))


def environment(service: dict[str, Any], variables: dict[str, str]) -> dict[str, str]:
    return {name: resolved(value, variables) for name, value in service["environment"].items()}


def program(command: list[str]) -> list[str]:
    """The `steward` of this virtual environment."""
    assert command[0] == "steward"
    return [str(Path(sys.executable).parent / "steward"), *command[1:]]


def test_every_service_is_watched_and_restarted(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {"api", "worker", "postgres", "redis"}
    for service in compose["services"].values():
        assert service["healthcheck"]["test"][0] == "CMD"
        assert service["restart"] == "unless-stopped"


def test_what_must_last_lies_on_named_volumes(compose: dict[str, Any]) -> None:
    used = {volume.split(":")[0] for service in compose["services"].values() for volume in service["volumes"]}
    assert used == set(compose["volumes"])


def test_only_the_api_is_published_on_loopback_and_it_asks_for_keys(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert {name: service["ports"] for name, service in services.items() if "ports" in service} == {
        "api": ["127.0.0.1:${STEWARD_PORT:-8080}:8080"]
    }
    assert not any("network_mode" in service for service in services.values())
    assert services["api"]["environment"]["STEWARD_AUTHENTICATION"] == "required"


def test_services_wait_for_what_they_need(compose: dict[str, Any]) -> None:
    services = compose["services"]
    needs = {name: set(service.get("depends_on", {})) for name, service in services.items()}
    assert needs == {"api": {"postgres", "redis"}, "worker": {"api"}, "postgres": set(), "redis": set()}


class Stage(NamedTuple):
    """A stage of the Dockerfile: its base, and its instructions as (name, arguments)."""

    base: str
    steps: list[tuple[str, str]]

    def of(self, name: str) -> list[str]:
        return [result for instruction, result in self.steps if instruction == name]


@pytest.fixture(scope="module")
def stages() -> dict[str, Stage]:
    """Stages by name; under "" the arguments before the first."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    stages = {"": Stage("", [])}
    for line in filter(None, text.splitlines()):
        name, _, sentence = line.partition(" ")
        if name == "FROM":
            base, _, stage = sentence.partition(" AS ")
            stages[stage] = Stage(base, [])
        else:
            stages[[*stages][-1]].steps.append((name, " ".join(sentence.split())))
    return stages


def test_the_wheels_of_the_image_are_built_of_all_their_sources(stages: dict[str, Stage]) -> None:
    copied = {name for result in stages["wheels"].of("COPY") for name in result.split()[:-1]}
    assert {"pyproject.toml", "README.md", "LICENSE", "NOTICE", "app", "workers", "migrations"} <= copied
    assert {"clients/python", "examples/demos"} <= copied
    assert "openapi.json" in copied  # app/openapi.json is a link to it
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.parametrize("extra", ["", "scaling", "scaling, otel", "scalling,otel"])
def test_an_extra_that_is_not_there_ends_the_build(extra: str) -> None:
    done = subprocess.run([sys.executable, ROOT / "deploy/extras", extra], capture_output=True, text=True, check=False)
    error = "EXTRAS=scalling,otel: no such extra: scalling; there are: archive, worker, " if "scalling" in extra else ""
    assert (done.returncode, done.stderr.startswith(error)) == (1 if error else 0, True)


def test_the_api_is_an_image_without_torch_and_the_worker_adds_it(
    stages: dict[str, Stage], compose: dict[str, Any]
) -> None:
    assert [*stages] == ["", "wheels", "api", "worker"]
    (api,) = (line for line in stages["api"].of("RUN") if "pip" in line)
    wheels = [f"/wheels/{name.replace('-', '_')}-*.whl" for name in ("steward_client", DISTRIBUTION)]
    pip = "pip install --no-cache-dir --constraint /wheels/constraints.txt"
    then = 'python /wheels/extras "${EXTRAS}" && /wheels/slim'
    assert api == f'{pip} {wheels[0]} "$(echo {wheels[1]})${{EXTRAS:+[$EXTRAS]}}" && {then}'
    assert stages["api"].of("ARG") == ["EXTRAS="]  # no extra, unless it is asked for
    torch, rest = stages["worker"].of("RUN")
    assert torch.endswith(
        '--no-deps --no-index --find-links "${TORCH}" torch && /wheels/slim'
    )  # no other build is ever taken
    assert rest.endswith(f'"$(echo /wheels/{DISTRIBUTION.replace("-", "_")}-*.whl)[archive,worker]" && /wheels/slim')
    assert stages["worker"].of("ARG") == ["TORCH=https://download.pytorch.org/whl/cpu/torch/"]
    for result in (torch, rest):
        assert "--constraint /wheels/constraints.txt" in result
    services = compose["services"]
    assert {name: services[name]["build"]["target"] for name in ("api", "worker")} == {"api": "api", "worker": "worker"}
    assert services["api"]["image"] != services["worker"]["image"]


def test_the_base_can_be_pinned_and_nobody_is_root(stages: dict[str, Stage]) -> None:
    assert stages[""].of("ARG") == ["BASE=python:3.11-slim"]
    assert [stages[name].base for name in ("wheels", "api", "worker")] == ["${BASE}", "${BASE}", "api"]
    for name in ("api", "worker"):
        users = [result for instruction, result in stages[name].steps if instruction in ("USER", "RUN", "CMD")]
        assert stages[name].of("USER")[-1] == "10001"
        assert users[-2:] == ["10001", *stages[name].of("CMD")]  # nothing runs after it but what serves
    assert stages["api"].of("CMD") == ['["steward", "serve", "--workers", "0"]']
    assert stages["worker"].of("CMD") == ['["steward", "worker"]']


def test_the_worker_of_the_image_takes_torch_from_a_folder(stages: dict[str, Stage], tmp_path: Path) -> None:
    wheel = tmp_path / "torch-2.13.0+cpu-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as zip_file:
        zip_file.writestr("torch/__init__.py", "")
        folder = "torch-2.13.0+cpu.dist-info"
        zip_file.writestr(f"{folder}/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0+cpu\n")
        zip_file.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        zip_file.writestr(f"{folder}/RECORD", "")
    result = (
        stages["worker"]
        .of("RUN")[0]
        .removesuffix(" && /wheels/slim")
        .replace("/wheels/constraints.txt", str(ROOT / "constraints.txt"))
    )
    command = [part.strip('"').replace("${TORCH}", str(tmp_path)) for part in result.split()]
    options = [*command[2:], "--target", str(tmp_path / "there")]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *options], check=True, capture_output=True, env=NO_LINKS)
    assert (tmp_path / "there/torch/__init__.py").exists()
    wheel.unlink()
    empty = subprocess.run([*pip, "install", *options], check=False, capture_output=True, env=NO_LINKS)
    assert empty.returncode == 1  # what lies there is all that counts


@pytest.fixture
def redis_port(compose: dict[str, Any]) -> Iterator[int]:
    """A real Redis under the very options of the file."""
    command = compose["services"]["redis"]["command"]
    assert command[0] == "redis-server"
    with redis_server(*command[1:]) as url:
        yield int(make_url(url).port or 0)


@pytest.fixture
def variables(postgres: PostgresServer, redis_port: int, compose: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The file's variables for real servers; PostgreSQL gets the user and database that the file names."""
    requested = compose["services"]["postgres"]["environment"]
    assert requested["POSTGRES_USER"] == "steward"
    postgres.execute(f"CREATE DATABASE {requested['POSTGRES_DB']}")
    yield {
        "STEWARD_POSTGRES_PORT": str(postgres.port),
        "STEWARD_REDIS_PORT": str(redis_port),
        "STEWARD_PORT": str(free_port()),
    }
    postgres.execute(f"DROP DATABASE {requested['POSTGRES_DB']} WITH (FORCE)")


class Stack:
    """The file's own commands as processes of this machine."""

    def __init__(self, compose: dict[str, Any], variables: dict[str, str], folder: Path) -> None:
        self.services = compose["services"]
        self.variables = variables
        self.folder = folder
        self.exit = ExitStack()

    def settings(self, name: str) -> dict[str, str]:
        """A service's environment; the names of other containers are loopback ports here."""
        parts = environment(self.services[name], self.variables)
        ports = {"postgres:5432": "STEWARD_POSTGRES_PORT", "redis:6379": "STEWARD_REDIS_PORT"}
        for address, variable in ports.items():
            parts = {
                key: value.replace(f"@{address}", f"@127.0.0.1:{self.variables[variable]}").replace(
                    f"//{address}", f"//127.0.0.1:{self.variables[variable]}"
                )
                for key, value in parts.items()
            }
        parts |= {"STEWARD_WORKER_NICE": "0", "STEWARD_TRAINING_NICE": "0"}  # or they wait for the tests beside
        if name == "api":  # a container's own network, with the port that is published of it
            parts |= {"STEWARD_HOST": "127.0.0.1", "STEWARD_PORT": self.variables["STEWARD_PORT"]}
        return clean_environment({**parts, "STEWARD_DATA_DIR": str(self.folder / name)})

    def first_key(self) -> dict[str, str]:
        """What is sent of the key that is made as the file says."""
        command = program(["steward", "key", "create", "--scopes", "admin"])
        process = subprocess.run(
            command, env=self.settings("api"), capture_output=True, text=True, check=True, timeout=60
        )
        return {"Authorization": f"Bearer {process.stdout.strip()}"}

    def start(self, name: str) -> subprocess.Popen[bytes]:
        log = self.exit.enter_context((self.folder / f"{name}.log").open("wb"))
        command = program(self.services[name]["command"])
        process = subprocess.Popen(command, env=self.settings(name), stdout=log, stderr=log, cwd=self.folder)
        self.exit.callback(stop, process)
        return process

    def healthy(self, name: str) -> bool:
        """Run a service's own health check; as with compose, a process each, so not too often."""
        command = program(self.services[name]["healthcheck"]["test"][1:])
        ended = subprocess.run(command, env=self.settings(name), capture_output=True, check=False, timeout=60)
        if ended.returncode:
            time.sleep(CHECK_SECONDS)
        return ended.returncode == 0


@pytest.fixture
def stack(compose: dict[str, Any], variables: dict[str, str], tmp_path: Path) -> Iterator[Stack]:
    """The services, ended in the order in which compose would."""
    stack = Stack(compose, variables, tmp_path)
    with stack.exit:
        yield stack


@pytest.mark.servers
def test_the_servers_answer_their_own_health_checks(compose: dict[str, Any], variables: dict[str, str]) -> None:
    port = variables["STEWARD_POSTGRES_PORT"]
    check = compose["services"]["postgres"]["healthcheck"]["test"][1:]
    ready = postgres_program(check[0])
    assert ready is not None
    subprocess.run([ready, *check[1:], "--host", "127.0.0.1", "--port", port], check=True, capture_output=True)
    check = compose["services"]["redis"]["healthcheck"]["test"][1:]
    server = redis_program()
    assert server is not None
    client = str(Path(server).with_name(check[0]))
    if not Path(client).exists():
        pytest.skip("redis-cli is not installed")
    answer = subprocess.run(
        [client, "-p", variables["STEWARD_REDIS_PORT"], *check[1:]], capture_output=True, check=True
    )
    assert answer.stdout.strip() == b"PONG"


@pytest.mark.servers
@pytest.mark.slow
def test_the_whole_stack_does_a_job(stack: Stack, variables: dict[str, str]) -> None:
    stack.start("api")
    wait_until(lambda: stack.healthy("api"), 60, "the API's health check")
    stack.start("worker")
    wait_until(lambda: stack.healthy("worker"), 60, "the worker's health check")
    caller = Caller(f"http://127.0.0.1:{variables['STEWARD_PORT']}")
    stack.exit.callback(caller.http.close)
    assert caller.get("/readyz")["ready"] is True
    assert caller.http.get("/workloads").status_code == 401
    caller.http.headers.update(stack.first_key())
    assert caller.fitted()["result"] == {"model": 1}
    url = make_url(stack.settings("api")["STEWARD_DATABASE_URL"]).set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
        row = connection.execute("SELECT count(*) FROM domain_models").fetchone()
    assert row == (1,)
    assert caller.get(f"/workloads/{WORKLOAD}")["name"] == WORKLOAD
