"""Commands of other packages (entry points ``steward.commands``), loaded only if no own command has the name."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer._click.exceptions import NoArgsIsHelpError, UsageError
from typer.core import TyperGroup
from typer.main import get_group

from app.cli.failures import RefusedError, UnreachableError, exit_status, misuse
from app.cli.options import INTERRUPTED, MISUSED, REFUSED
from app.startup import EXIT_STATUS, StartupError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "steward.commands"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Commands(TyperGroup):
    """Group of all commands; prints expected errors in one line and sets the exit status.

    Other packages are loaded only for listings and unknown names, so own commands never depend on them.
    """

    _complete = False

    def make_context(self, *given: Any, **named: Any) -> Any:
        """Parse the options before the command's name; an expected error is printed and raised as typer.Exit."""
        with _report_errors():
            return super().make_context(*given, **named)

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

    def _discover(self) -> None:
        if self._complete:
            return
        self._complete = True
        from importlib.metadata import entry_points

        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
            for name, command in _commands_of(point).items():
                # Merge the commands of two groups of the same name; the first of equal names is kept
                kept = self.commands.setdefault(name, command)
                if kept is not command and isinstance(kept, TyperGroup) and isinstance(command, TyperGroup):
                    kept.commands = {**command.commands, **kept.commands}


@contextmanager
def _report_errors() -> Iterator[None]:
    """Context manager: print expected errors in one line and exit with their status (typer.Exit); others pass."""
    try:
        yield
    except NoArgsIsHelpError:
        raise
    except UsageError as error:
        _end(misuse(error), MISUSED, error)
    except StartupError as error:
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


class Defaulting(TyperGroup):
    """A group with a default command, which gets all arguments that name no other command."""

    default = "create"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command's name before arguments that name no command."""
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = [self.default, *args]
        return super().parse_args(ctx, args)
