"""What is said of a noun: its paths, columns and bodies. Commands, tables and completion follow from it.

Nothing here knows a kind: columns are common to all, and what is a kind's own is told as it comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

KEYS = {"workload": "name", "version": "version", "id": "id", "run": "id", "series": "series", "execution": "execution"}
"""By which member an item of a list is named where a path has ``{workload}``, ``{version}``, …"""
NAMED = ("workload", "series")
"""What is always meant by its name: there is no newest."""
NEWEST, CHAMPION = "newest", "champion"


class Column(NamedTuple):
    """A column of a list.

    Attributes:
        head: above it.
        member: of an item, with dots where it lies deeper.
        form: how its values are written.
        whole: whether it is never cut, as ids, which are typed again, and states, which are searched for.
    """

    head: str
    member: str
    form: Literal["text", "age", "share", "flag", "lasting", "moment"] = "text"
    whole: bool = False


class Option(NamedTuple):
    """An option that is a member of the body, or of the query: what is not given is not sent."""

    name: str
    kind: Any
    help: str


@dataclass(frozen=True)
class Action:
    """A command: a call, what it takes, and how its answer is told.

    Attributes:
        verb: its name.
        call: method and path; what stands in braces are arguments.
        help: a sentence.
        columns: of a list; without any the answer is one thing.
        given: further arguments, which are members of body or query.
        options: see there.
        fields: whether it takes ``member=value …``.
        document: whether it takes a file with the body, as an argument; with ``fields`` alone it is an option.
        fixed: what the body always says.
        newest: whether the path's last argument may be missing, and means the newest.
        told: what is said where nothing is answered.
        result: where what came of a job is, with members of its result in braces; None: the answer is no job.
        suffix: of the file that is answered; empty: the answer is JSON.
    """

    verb: str
    call: str
    help: str
    columns: tuple[Column, ...] = ()
    given: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    fields: bool = False
    document: bool = False
    fixed: Mapping[str, Any] = field(default_factory=dict)
    newest: bool = False
    told: str = ""
    result: str | None = None
    suffix: str = ""

    @property
    def method(self) -> str:
        """HTTP method of the call, such as ``GET``."""
        return self.call.partition(" ")[0]

    @property
    def path(self) -> str:
        """Path of the call, with its parameters in braces."""
        return self.call.partition(" ")[2]

    @property
    def arguments(self) -> list[str]:
        """What stands in braces in the path, in order."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    def collection(self, argument: str) -> str:
        """The path of the list that ``argument`` names an item of."""
        return self.path.partition(f"/{{{argument}}}")[0]


@dataclass(frozen=True)
class Noun:
    """A noun, and what can be done with it."""

    name: str
    help: str
    actions: tuple[Action, ...]
