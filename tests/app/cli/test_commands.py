"""The `steward` command: its own commands, and those of packages."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from app.cli.main import cli

HEAVY = ("numpy", "pydantic", "httpx", "sqlalchemy", "fastapi", "celery", "rich.console", "workers")


def register(cli: typer.Typer) -> None:
    """As a package from outside adds commands: one of its own, and one that is there already."""

    @cli.command()
    def water(plants: int) -> None:
        typer.echo(f"watered {plants}")

    @cli.command()
    def serve() -> None:
        typer.echo("not that of Steward")


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two packages with commands, of which one is broken."""
    named = {"garden": __name__, "broken": "nobody.wrote.this"}
    points = [EntryPoint(name, value, "steward.commands") for name, value in named.items()]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: points)


@pytest.mark.usefixtures("packages")
def test_a_package_brings_commands() -> None:
    done = CliRunner().invoke(cli, ["water", "3"])
    assert (done.exit_code, done.stdout) == (0, "watered 3\n")
    listed = CliRunner().invoke(cli, ["--help"])
    assert listed.exit_code == 0
    assert "water" in listed.stdout
    assert "command broken (nobody.wrote.this) can't be used: No module named 'nobody'" in listed.stderr


@pytest.mark.usefixtures("packages")
def test_a_package_takes_no_command_of_the_services_own() -> None:
    done = CliRunner().invoke(cli, ["serve", "--help"])
    assert "Run the API" in done.stdout
    assert done.stderr == ""  # nobody else was asked
    CliRunner().invoke(cli, ["nothing"])
    assert "Run the API" in CliRunner().invoke(cli, ["--help"]).stdout


def test_help_lists_what_kinds_bring_and_imports_nothing_heavy() -> None:
    program = (
        "import json, sys\nfrom app.cli.main import cli\n"
        "try: cli(['--help'])\n"
        f"finally: print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert {"serve", "simulate", "import", "pretrain"} <= set(listed)
    assert json.loads(done.stdout.splitlines()[-1]) == []


NOWHERE = ["--url", "http://127.0.0.1:1"]


@pytest.mark.parametrize(
    ("words", "status"),
    [(["run", "launch", "--help"], 0), (["workload", "list", *NOWHERE], 3), (["health", *NOWHERE], 1)],
)
def test_commands_that_only_ask_the_service_import_no_numbers(words: list[str], status: int) -> None:
    program = (
        "import sys\nfrom app.cli.main import cli\n"
        f"try: cli({words!r})\n"
        "finally: print([name for name in ('numpy', 'pydantic', 'sqlalchemy', 'uvicorn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert done.returncode == status


def _pages(group: TyperGroup, *path: str) -> Iterator[tuple[str, str]]:
    """The help of a group and of all below it."""
    yield " ".join(path), CliRunner().invoke(cli, [*path, "--help"], terminal_width=80).stdout
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _pages(command, *path, name)


def test_each_command_has_a_whole_line_in_80_columns_where_it_is_listed() -> None:
    group = get_command(cli)
    assert isinstance(group, TyperGroup)
    group.list_commands(typer.Context(group))  # finds those of packages
    for path, result in _pages(group):
        sections = re.findall(r"\n(?:\w+ c|C)ommands:\n(.*?)(?:\n\n|\n$)", f"{result}\n", re.DOTALL)
        listed = "\n".join(sections).splitlines()
        assert [line for line in listed if line.endswith("...") or len(line) > 80] == [], path
        assert len(listed) > 1
