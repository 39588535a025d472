"""Commands of shell blocks, read without being run: their names and options are those that are there."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import typer
from steward_client.launcher import arguments
from typer._click.exceptions import BadParameter

from app.cli.main import cli
from tests.documents.blocks import ROOT

STEWARD = typer.main.get_command(cli)
ENDS = set(";&|()<>\n")
COMMENT = re.compile(r"(?:^|\s+)#.*$", re.MULTILINE)
PATHS = json.loads((ROOT / "openapi.json").read_text())["paths"]
SERVICE = re.compile(r"(?:http://[\w.]+:8080|localhost:8080|\$STEWARD\w*)(/[^?]*)(?:\?.*)?")
ABSENT = re.compile(r"does not exist|is no file|not found")


def commands(script: str) -> Iterator[list[str]]:
    """The words of each command of a script."""
    bare = COMMENT.sub("", script).replace("\\\n", " ").replace("$(", " ; ")
    lexer = shlex.shlex(bare, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace_split = True
    lexer.whitespace = " \t\r"
    lexer.commenters = ""
    words: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= ENDS:
            if words:
                yield words
            words = []
        else:
            words.append(word)


def accept(words: list[str]) -> None:
    """Raise where a command of this project's own takes no such words; others are let by."""
    name, *rest = words
    name = name.rpartition("/")[2]
    if name == "steward" and rest[:1] == ["run"] and "--" in rest:
        arguments.read("steward run", rest[1:])
    elif name == "steward":
        _accept_steward(rest)
    elif name == "make":
        defined = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {word for word in rest if word.isalpha()} <= set(defined), words
    elif name == "python" and rest[:1] == ["-m"]:
        assert importlib.util.find_spec(rest[1]) is not None, words
    elif name == "curl":
        _accept_request(rest)
    elif name == "pytest":
        assert [word for word in rest if "/" in word and not (ROOT / word).exists()] == []


def _accept_request(words: list[str]) -> None:
    """A request to the service is for a verb and a path of its schema."""
    sends = any(word in ("-d", "--data-binary") for word in words)
    verb = words[words.index("-X") + 1] if "-X" in words else "POST" if sends else "GET"
    (path,) = (match[1] for word in words if (match := SERVICE.fullmatch(word)))
    assert any(
        re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and verb.lower() in operations
        for template, operations in PATHS.items()
    ), (verb, path)


def _accept_steward(words: list[str]) -> None:
    """Raises UsageError for an unknown command or option, or for one that is missing; files need not be there."""
    try:
        context: Any = STEWARD.make_context("steward", list(words))
        while hasattr(context.command, "commands"):
            rest = [*context._protected_args, *context.args]
            name, command, rest = context.command.resolve_command(context, rest)
            context = command.make_context(name, rest, parent=context)
    except BadParameter as error:
        if not ABSENT.search(str(error)):
            raise
