"""How the command line names an operation: the extension ``x-cli`` of its entry in the OpenAPI document.

It maps each command line, such as ``job list``, to what its description alone does not tell:

- ``columns``: columns of a list, as ``member`` or ``head: member``; a member deeper down is named with dots.
- ``arguments``: members of the query or body that are positional arguments.
- ``options``: members of the body that are options, too; the query's members always are.
- ``fields``: the query is given as ``member=value …``; a JSON body always can be.
- ``document``: the body is a file, named by the first argument.
- ``fixed``: members that are sent unless an option says otherwise.
- ``result``: path to print when the job has ended that the operation starts, with members of its result in braces;
  empty for the job itself.
- ``file``: name of the file that the response is written to, unless another is given.
- ``help``: a sentence, where the operation's description doesn't fit.

`app.cli.nouns` makes commands of it.
"""

from __future__ import annotations

from typing import Any


def command(line: str, **settings: Any) -> dict[str, Any]:
    """The extension of an operation that one command line calls; ``settings`` as in the module's list."""
    return {"x-cli": {line: settings}}
