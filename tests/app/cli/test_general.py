"""Options before the command, help in sections, hints at what is meant, explanations, completion scripts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from app.cli.explain import WIDTH, lines
from app.cli.general import own_version
from app.cli.main import cli
from app.cli.operations import operations
from app.nouns import NOUNS
from tests.servers import clean_environment

ROOT = Path(__file__).parents[3]


def steward(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[httpx.Request]:
    """What is sent to a service that has two runs of each workload."""
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        workload = request.url.params.get("workload", "any")
        items = [{"id": f"{number}-of-{workload}"} for number in (2, 1)] if workload != "empty" else []
        return httpx.Response(200, json={"items": items, "next": None, "id": "x", "info": {"version": "7.8.9"}})

    Client = httpx.Client

    def client(base_url: str, headers: dict[str, str], **_: Any) -> httpx.Client:
        return Client(transport=httpx.MockTransport(answer), base_url=base_url, headers=headers)

    monkeypatch.setattr("app.cli.remote.service.httpx.Client", client)
    monkeypatch.delenv("STEWARD_URL", raising=False)
    monkeypatch.delenv("STEWARD_API_KEY", raising=False)
    return sent


def test_url_and_token_may_stand_before_the_command(
    requests: list[httpx.Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEWARD_API_KEY", "of-environment")
    assert steward("--url", "http://one:1", "--token", "k1", "run", "list").exit_code == 0
    assert steward("--url", "http://one:1", "run", "list", "--url", "http://two:2").exit_code == 0
    assert steward("run", "list").exit_code == 0
    sent = [(request.url.host, request.headers["authorization"]) for request in requests]
    assert sent == [("one", "Bearer k1"), ("two", "Bearer of-environment"), ("127.0.0.1", "Bearer of-environment")]
    assert (os.environ.get("STEWARD_URL"), os.environ["STEWARD_API_KEY"]) == (None, "of-environment")
    wrong = steward("--url", "one:1", "run", "list")
    assert (wrong.exit_code, "'one:1' is not the address of a service" in wrong.stderr) == (2, True)


@pytest.mark.usefixtures("requests")
def test_versions_of_client_and_service() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert steward("--version").stdout == f"steward {project['version']}\n"
    assert (
        steward("--url", "http://one:1", "version").stdout == f"client {own_version()}\nserver 7.8.9 at http://one:1\n"
    )
    assert json.loads(steward("version", "--json").stdout) == {"client": own_version(), "server": "7.8.9"}


@pytest.mark.parametrize("answer", [{"info": {}}, {"info": None}, {}, [1]])
def test_a_service_of_another_kind_has_no_version(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    monkeypatch.setattr("app.cli.remote.service.Service.call", lambda *_: answer)
    process = steward("version", "--url", "http://me:secret@one:1")
    assert (process.exit_code, process.stdout) == (3, "")
    assert process.stderr == "steward: http://one:1 is not a Steward service\n"


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("newest", "/runs/2-of-any"),
        ("latest", "/runs/2-of-any"),
        ("@latest", "/runs/2-of-any"),
        ("vision@newest", "/runs/2-of-vision"),
        ("vision@latest", "/runs/2-of-vision"),
        ("vision@other", "/runs/vision%40other"),
        ("abcdef", "/runs/abcdef"),
    ],
)
def test_the_newest_run_may_be_a_workloads(requests: list[httpx.Request], word: str, path: str) -> None:
    assert steward("run", "show", word).exit_code == 0
    assert requests[-1].url.raw_path.decode() == path


@pytest.mark.usefixtures("requests")
def test_a_workload_without_runs_has_no_newest() -> None:
    process = steward("run", "show", "empty@newest")
    assert (process.exit_code, process.stdout) == (5, "")
    assert "there is none yet; `steward run create empty` makes one" in process.stderr


def test_a_format_is_one_of_those_and_there_is_one_only(requests: list[httpx.Request]) -> None:
    assert "'xml' is not one of" in steward("run", "list", "-o", "xml").stderr
    both = steward("run", "list", "--json", "-o", "csv")
    assert (both.exit_code, "--json and --output csv exclude one another" in both.stderr) == (2, True)
    for command in ("agent show w", "evaluate show", "forecast w"):
        both = steward(*command.split(), "--json", "-o", "yaml")
        assert (both.exit_code, "--json and --output yaml exclude one another" in both.stderr) == (2, True)
    assert requests == []
    assert steward("run", "list", "-o", "name").stdout == "2-of-any\n1-of-any\n"
    assert steward("run", "show", "x", "-o", "name").stdout == "x\n"


def test_help_has_sections_and_every_command_once() -> None:
    output = steward("--help").stdout
    titles = [line for line in output.splitlines() if line.endswith("commands:")]
    assert titles[:4] == ["Run commands:", "Learn commands:", "Inspect commands:", "Operate commands:"]
    assert "Other commands:" not in titles  # each has its section
    names = [line.split()[0] for line in output.partition("Run commands:")[2].splitlines() if line.startswith("  ")]
    listed = names[: names.index("Exit")]
    assert len(listed) == len(set(listed))
    assert {noun.command for noun in NOUNS.values() if noun.command} < set(listed)
    assert "5 not found" in " ".join(output.split())


def test_help_of_runs_has_the_launchers_options() -> None:
    output = steward("run", "--help").stdout
    assert "  iterations  List iterations." in output
    assert "--deadline TIME" in output
    assert "steward run --learn --deadline 30m -- python train.py" in output


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("get runs", "`run list` or `run show`"),
        ("runs list", "`run list`"),
        ("runs", "`run list`"),
        ("jobs", "`job list`"),
        ("describe workload resnet18", "`workload show`"),
        ("delete run abc", "`run delete`"),
        ("logs job", "`job watch`"),
        ("workload edit resnet18", "`workload update`"),
        ("workload change resnet18", "`workload update`"),
        ("workload decide resnet18", "`workload recommend`"),
        ("run ls", "`run list`"),
        ("evaluate ls", "`evaluate list`"),
        ("wrokload list", "'workload'"),
        ("workload lst", "'list'"),
        ("drift edit resnet18", "`drift set`"),
    ],
)
def test_a_wrong_guess_names_the_command(typed: str, meant: str) -> None:
    process = steward(*typed.split())
    assert (process.exit_code, process.stdout) == (2, "")
    assert re.search(rf"Did you mean {meant}\?( see `steward| `steward run -- ls …` launches it;)", process.stderr)
    assert process.stderr.count("\n") == 1
    for one in meant.replace("` or `", "`").split("`"):
        assert " " not in one.strip() or one in operations()


def test_a_word_is_a_guess_only_at_a_verb_that_the_group_has(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []
    monkeypatch.setattr("app.cli.remote.evaluate.run", lambda options: requests.append(options.request["workload"]))
    for program in ("cat", "start"):
        assert f" `steward run -- {program} …` launches it; see" in steward("run", program, "x.txt").stderr
    for workload in ("query", "deploy"):  # words for `recommend` and `promote`
        steward("evaluate", workload)
    assert requests == ["query", "deploy"]


@pytest.mark.parametrize("typed", ["nothing at all", "get", "get nothing"])
def test_what_is_no_guess_is_told_where_to_look(typed: str) -> None:
    process = steward(*typed.split())
    assert (process.exit_code, process.stderr.endswith("see `steward --help`\n")) == (2, True)


@pytest.mark.parametrize("retired", ["respond", "retain", "decide", "change", "drift", "retention"])
def test_retired_words_are_no_commands(retired: str) -> None:
    assert steward("workload", retired, "resnet18").exit_code == 2


IN_BASH = """
steward() { "$PYTHON" -m app.cli "$@"; }
source <(steward --show-completion)
typed() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _steward_completion steward; echo "${COMPREPLY[@]}"; }
typed steward work
typed steward workload sh
typed steward --show
complete -p steward
steward --install-completion
"""
IN_ZSH = """
compdef() { print compdef "$@"; }
steward() { "$PYTHON" -m app.cli "$@"; }
eval "$(steward --show-completion)"
steward --install-completion
"""


def shell_says(shell: str, script: str, home: Path) -> list[str]:
    """Lines that a shell prints whose home is ``home``; its program finds itself as `env steward`."""
    program = home / "bin" / "steward"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m app.cli "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    environment = clean_environment(
        {"HOME": str(home), "PATH": path, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    )
    done = subprocess.run([shell, "-c", script], env=environment, capture_output=True, text=True, check=True, cwd=home)
    return done.stdout.splitlines()


def test_bash_completes_by_the_script_that_is_shown_and_installed(tmp_path: Path) -> None:
    commands, verbs, options, hook, *rest = shell_says("bash", IN_BASH, tmp_path)
    assert commands.split() == ["worker", "workload"]
    assert verbs.split() == ["show"]
    assert options.split() == ["--show-completion"]
    assert hook == "complete -o default -F _steward_completion steward"
    assert "bash completion installed in" in rest[0]
    assert "_STEWARD_COMPLETE" in (tmp_path / ".bash_completions" / "steward.sh").read_text()
    assert ".bash_completions/steward.sh" in (tmp_path / ".bashrc").read_text()


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_gets_its_script_shown_and_installed(tmp_path: Path) -> None:
    hook, *rest = shell_says("zsh", IN_ZSH, tmp_path)
    assert hook == "compdef _steward_completion steward"
    assert "zsh completion installed in" in rest[0]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_and_completions(shell: str, tmp_path: Path) -> None:
    request = {
        "_STEWARD_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "steward workload sh",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    for variables, result in (({"_STEWARD_COMPLETE": f"source_{shell}"}, "_STEWARD_COMPLETE"), (request, "show")):
        environment = clean_environment({"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), **variables})
        program = [sys.executable, "-m", "app.cli"]
        done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert (result in done.stdout, done.stderr) == (True, "")


def explained(path: str) -> str:
    return "\n".join(lines(path))


def test_fields_are_explained_by_the_schema() -> None:
    result = explained("workload")
    assert "`steward workload create`" in result
    assert "\n    kind  <cluster | inference | iterative | workflow>\n" in result
    assert "\n    resources  <list of object>  kind iterative" in result
    assert "in `steward workload update`\n    New targets by metric; null removes a target." in explained(
        "workload.targets"
    )
    assert "<on_track | at_risk | stale | met | missed" in explained("run.outcome")
    assert "number  required" not in explained("workload.resources.step")
    assert "\n    minimum  <number>  required\n        (at least 0)" in explained("workload.resources")
    assert explained("runs.outcome") == explained("run.outcome")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nothing", "must be one of workload, samples"),
        ("run.nothing", "run has the fields agent, "),
        ("run.id.more", "run.id has no fields, and no 'more'"),
        ("run" + 13 * ".x", "has 13 names; at most 12"),
        ("run.", "and no ''"),
    ],
)
def test_an_unknown_field_names_those_that_there_are(path: str, text: str) -> None:
    process = steward("explain", path)
    assert (process.exit_code, process.stdout) == (2, "")
    assert text in process.stderr


@pytest.mark.parametrize("noun", [noun.command for noun in NOUNS.values() if noun.command])
def test_every_noun_is_explained_in_lines_of_a_terminal(noun: str) -> None:
    entries = [*lines(noun)]
    assert 3 < len(entries) < 1_000
    assert [line for line in entries if len(line) > WIDTH and line.startswith(8 * " ") and " " in line.strip()] == []
