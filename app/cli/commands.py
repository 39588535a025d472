"""Commands of other packages (entry points ``steward.commands``), loaded only if no own command has the name."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer._click.exceptions import NoArgsIsHelpError, UsageError
from typer.core import TyperGroup
from typer.main import get_group

from app.cli.failures import RefusedError, UnreachableError, exit_status, misuse
from app.cli.options import INTERRUPTED, MISUSED, REFUSED
from app.installed import NotInstalledError
from app.startup import EXIT_STATUS, StartupError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "steward.commands"
SECTIONS: dict[str, tuple[str, ...]] = {
    "Run": ("run", "workload", "init", "demo"),
    "Learn": ("samples", "series", "model", "train", "agent", "evaluate", "drift", "import", "pretrain"),
    "Inspect": ("job", "forecast", "simulate", "explain", "audit", "doctor", "health", "version"),
    "Operate": (
        *("serve", "worker", "db", "key", "caps", "retention", "webhooks"),
        *("mcp", "scaler", "recommender", "adapter", "replicas"),
    ),
}
"""Sections of ``steward --help``, with their commands in order; commands of other packages follow in one more."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Commands(TyperGroup):
    """Group of all commands; prints expected errors in one line and sets the exit status.

    Other packages are loaded only for listings and unknown names, so own commands never depend on them.
    """

    _complete = False

    def make_context(self, *extra: Any, **named: Any) -> Any:
        """Parse the options before the command's name; an expected error is printed and raised as typer.Exit."""
        with _report_errors():
            return super().make_context(*extra, **named)

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command; an expected error is printed and raised as typer.Exit."""
        with _report_errors():
            return super().invoke(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name; None if there is none."""
        if cmd_name not in self.commands:
            self._discover()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of own commands, then of other packages' commands."""
        self._discover()
        return super().list_commands(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with their summaries, one section per task."""
        listed = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        sections = {**SECTIONS, "Other": [name for name in listed if name not in sum(SECTIONS.values(), ())]}
        width = formatter.width - 6 - max(map(len, listed), default=0)
        for title, names in sections.items():
            rows = [(name, listed[name].get_short_help_str(width)) for name in names if name in listed]
            if rows:
                with formatter.section(f"{title} commands"):
                    formatter.write_dl([(name.ljust(max(map(len, listed))), text) for name, text in rows])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Name, command and remaining arguments; a UsageError for an unknown command names those that may be meant."""
        return suggest(lambda: super(Commands, self).resolve_command(ctx, args), self, args)

    def _discover(self) -> None:
        if self._complete:
            return
        self._complete = True
        from importlib.metadata import entry_points

        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
            for name, command in _commands_of(point).items():
                # Merge the commands of two groups of the same name; the first of equal names is kept
                first = self.commands.setdefault(name, command)
                if first is not command and isinstance(first, TyperGroup) and isinstance(command, TyperGroup):
                    first.commands = {**command.commands, **first.commands}


@contextmanager
def _report_errors() -> Iterator[None]:
    """Context manager: print expected errors in one line and exit with their status (typer.Exit); others are raised."""
    try:
        yield
    except NoArgsIsHelpError:
        raise
    except UsageError as error:
        _end(misuse(error), MISUSED, error)
    except (StartupError, NotInstalledError) as error:
        _end(f"steward: {error}", EXIT_STATUS, error)
    except (RefusedError, UnreachableError) as error:
        _end(f"steward: {error}", exit_status(error), error)
    except KeyboardInterrupt:
        _end("interrupted", INTERRUPTED, None)
    except OSError as error:
        if error.errno not in FULL:
            raise
        _end(f"steward: {error.filename or 'what was to be printed'}: {error.strerror}", REFUSED, error)


def _end(line: str, status: int, error: BaseException | None) -> NoReturn:
    typer.echo(line, err=True)
    raise typer.Exit(status) from error


def _commands_of(point: EntryPoint) -> Mapping[str, Any]:
    """Commands that a package's ``register(cli)`` adds; none, with a message on standard error, if it fails."""
    package = typer.Typer(rich_markup_mode=None)
    try:
        point.load().register(package)
        return get_group(package).commands
    except Exception as error:  # noqa: BLE001 # whatever is wrong with it: the others are not to suffer
        typer.echo(f"steward: command {point.name} ({point.value}) can't be used: {error}", err=True)
        return {}


# Users of kubectl, docker and git guess other verbs, an order of verb and noun, and plurals.


VERBS = {
    "list": ("get", "ls", "ps", "all"),
    "show": ("get", "describe", "read", "view", "cat", "status", "info"),
    "create": ("new", "add", "start", "register", "apply", "submit", "post"),
    "update": ("edit", "patch", "set", "apply", "modify", "change"),
    "set": ("edit", "patch", "update", "change"),
    "delete": ("rm", "remove", "del", "destroy"),
    "finish": ("stop", "end", "complete", "kill", "cancel"),
    "cancel": ("stop", "kill", "abort", "finish"),
    "watch": ("follow", "logs", "log", "tail", "wait"),
    "iterations": ("events", "history", "logs", "steps"),
    "recommend": ("decide", "ask", "predict", "query"),
    "promote": ("deploy", "activate", "release"),
}
"""Verbs of groups, and words that other programs have for them."""


def suggest(resolve: Callable[[], Any], group: TyperGroup, args: Sequence[str]) -> Any:
    """The result of ``resolve``; its UsageError about an unknown command gets the commands that may be meant."""
    try:
        return resolve()
    except UsageError as error:
        meant = _meant(group, [word.lower() for word in args if not word.startswith("-")])
        if meant:
            unknown = error.message.partition(". Did you mean")[0].rstrip(".")
            error.message = f"{unknown}. Did you mean {' or '.join(f'`{one}`' for one in meant)}?"
        raise


def _meant(group: TyperGroup, words: Sequence[str]) -> list[str]:
    """Commands that the unknown first words may mean: ``get runs`` and ``runs list`` are ``run list``."""
    nouns = {name: command for name, command in group.commands.items() if isinstance(command, TyperGroup)}
    if not nouns:  # a group of one noun
        return _verbs(group, words[0], group.name or "") if words else []
    for position, word in enumerate(words[:2]):
        noun = next((one for one in (word, word.removesuffix("s")) if one in nouns), None)
        verb = words[1 - position] if len(words) > 1 else ""
        if noun is not None and noun != words[0]:
            return (_verbs(nouns[noun], verb, noun) if verb else []) or [f"{noun} list"]
    return []


def _verbs(group: TyperGroup, word: str, noun: str) -> list[str]:
    if word in group.commands:
        return [f"{noun} {word}"]
    return [f"{noun} {verb}" for verb in group.commands if word in VERBS.get(verb, ())]


class Noun(TyperGroup):
    """A group of commands of one noun, whose errors about unknown verbs name the ones that may be meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Name, command and remaining arguments; a UsageError for an unknown command names those that may be meant."""
        return suggest(lambda: super(Noun, self).resolve_command(ctx, args), self, args)


class Defaulting(Noun):
    """A group with a default command, which gets all arguments that name no other command."""

    default = "create"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, after the default command's name if they name no command and no other word for one."""
        guess = bool(args) and "--" not in args and any(args[0] in VERBS.get(verb, ()) for verb in self.commands)
        if args and not guess and args[0] not in (*self.commands, *ctx.help_option_names):
            args = [self.default, *args]
        return super().parse_args(ctx, args)
