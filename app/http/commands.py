"""OpenAPI extension ``x-cli``, by which routes define the commands of the command line.

It maps each command, such as ``job list``, to settings that the operation's description lacks:

- ``columns``: columns of a list, as ``member`` or ``head: member``; dots name nested members.
- ``arguments``: members of the query or body that are positional arguments.
- ``options``: members of the body that are options; members of the query always are.
- ``fields``: the query is given as ``member=value …``; a JSON body always can be.
- ``document``: the body is a file, named by the first argument.
- ``fixed``: members sent by default.
- ``result``: path to print when the operation's job has ended, with members of its result in braces; empty: the job.
- ``file``: default name of the file to which the response is written.
- ``help``: a sentence that replaces the operation's description.

`app.cli.nouns` makes the commands.
"""

from __future__ import annotations

from typing import Any


def command(line: str, **settings: Any) -> dict[str, Any]:
    """The extension of an operation with one command; ``settings`` as in the module's list."""
    return {"x-cli": {line: settings}}
