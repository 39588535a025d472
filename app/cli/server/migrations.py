"""The database's tables are changed in a process of its own: the API needs no Alembic in its memory."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import sys
from multiprocessing.process import BaseProcess

from app.settings import Settings
from app.startup import EXIT_STATUS, StartupError, first_line, without_password


def migrate(settings: Settings) -> None:
    """Bring the database's tables to this version.

    Raises:
        StartupError: it failed.
    """
    linux = sys.platform == "linux"
    start: type[BaseProcess] = multiprocessing.context.ForkProcess if linux else multiprocessing.context.SpawnProcess
    context = multiprocessing.get_context()
    problems = context.SimpleQueue()
    process = start(target=_change, args=(settings.database_url, problems), name="migrations")
    process.start()
    process.join()
    if process.exitcode != 0:
        problem = f"ended with status {process.exitcode}" if problems.empty() else problems.get()
        said = f"STEWARD_DATABASE_URL={without_password(settings.database_url)!r}"
        raise StartupError(f"{said}: the tables can't be brought to this version: {problem}")


def _change(url: str, problems: multiprocessing.SimpleQueue[str]) -> None:
    """The whole process. Ctrl-C reaches it too, and would cut a migration in two."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from alembic.util import CommandError
    from sqlalchemy.exc import SQLAlchemyError

    from migrations.runner import upgrade

    try:
        upgrade(url)
    except RuntimeError as error:  # rows would refer to nothing
        problems.put(first_line(error))
        sys.exit(EXIT_STATUS)
    except (SQLAlchemyError, OSError) as error:
        problems.put(f"{first_line(getattr(error, 'orig', None) or error)}; is there space, and may it be written to?")
        sys.exit(EXIT_STATUS)
    except CommandError as error:
        problems.put(f"{first_line(error)}; another version of Steward made it: run that one, or name another")
        sys.exit(EXIT_STATUS)
