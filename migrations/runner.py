"""Run the migrations on a database given by URL, without an alembic.ini."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

HERE = Path(__file__).parent


def configuration(url: str) -> Config:
    """Alembic's configuration for a database."""
    config = Config()
    config.set_main_option("script_location", str(HERE).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.set_main_option("file_template", "%%(year)d_%%(month).2d_%%(day).2d_%%(slug)s")
    config.attributes["url"] = url
    return config


def upgrade(url: str, revision: str = "head") -> None:
    """Bring a database forward to a revision; creates SQLite's file and its folder where needed.

    Raises CommandError for an unknown revision, RuntimeError (``BrokenReferences``) if rows of SQLite would refer to
    missing rows, and SQLAlchemyError if the database can't be reached; the tables are unchanged then."""
    command.upgrade(configuration(url), revision)


def check(url: str) -> None:
    """Raise alembic.util.CommandError when the tables in code and in the database differ."""
    command.check(configuration(url))


def head() -> str | None:
    """The revision that these migrations lead to."""
    return ScriptDirectory.from_config(configuration("")).get_current_head()


def is_known(revision: str) -> bool:
    """Whether these migrations lead to a revision."""
    return any(
        script.revision == revision for script in ScriptDirectory.from_config(configuration("")).walk_revisions()
    )
