"""The reference of the command line, written from its commands: a page for each group, and one for all others."""

from __future__ import annotations

import argparse
import re
from functools import partial
from typing import Any

import typer
from steward_client.launcher import arguments
from typer.cli import get_docs_for_click
from typer.core import TyperGroup

from app.cli.main import cli

MAIN = "reference/cli.md"
WIDTH = 100
"""Characters of a line of the launcher's help."""
SECTION = re.compile(r"^## `steward ([\w-]+)`$", re.MULTILINE)


def groups() -> list[str]:
    """Names of the groups of commands, in the order of the help."""
    command, context = _root()
    return [
        name for name in command.list_commands(context) if isinstance(command.get_command(context, name), TyperGroup)
    ]


def page(group: str) -> str:
    """The path of a group's page."""
    return f"reference/cli/{group}.md"


def pages() -> dict[str, str]:
    """Each page's path and text as Markdown; the main page links to the others."""
    command, context = _root()
    _tell_whole(command, context)
    text = get_docs_for_click(obj=command, ctx=context, name="steward", title="Command line")
    own = set(groups())
    main, *rest = SECTION.split(text)
    result = {}
    for name, section in zip(rest[::2], rest[1::2], strict=True):
        if name in own:
            raised = re.sub(r"^#(#+ )", r"\1", section, flags=re.MULTILINE)
            result[page(name)] = f"# `steward {name}`{raised}"
        else:
            main += f"## `steward {name}`{section}"
    result[page("run")] += _launcher()
    for name in own:
        main = re.sub(rf"^\* `{name}`", f"* [`{name}`](cli/{name}.md)", main, flags=re.MULTILINE)
    return {MAIN: main, **result}


def _launcher() -> str:
    """The launcher's own help as a section; its options are read by argparse, not by the commands' parser."""
    parser = arguments.parser("steward run")
    parser.formatter_class = partial(argparse.RawDescriptionHelpFormatter, width=WIDTH)
    return f"\n## `steward run [options] -- COMMAND`\n\n```text\n{parser.format_help()}```\n"


def _root() -> tuple[Any, Any]:
    command = typer.main.get_command(cli)
    return command, typer.Context(command, info_name="steward")


def _tell_whole(command: Any, context: typer.Context) -> None:
    """Have lists of commands show the first paragraph of each one's help as a whole; a terminal's are cut off."""
    if not isinstance(command, TyperGroup):
        return
    for name in command.list_commands(context):
        one: Any = command.get_command(context, name)
        one.short_help = " ".join((one.help or "").partition("\n\n")[0].split())
        _tell_whole(one, context)
