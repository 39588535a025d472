"""Command `python -m workers.prune`: archive and delete rows past their retention; for workers and `steward db prune`.

It is a separate process, since it may take long, and keeps the archive's libraries out of the caller's memory.
"""

from __future__ import annotations

import sys

from sqlalchemy.exc import SQLAlchemyError

from app.database.engine import Database
from app.installed import command
from app.processes import process_name
from app.retention.service import Archive, HeldElsewhere, NoArchive, Pruning
from app.settings import Settings, get_settings
from app.startup import EXIT_STATUS, first_line
from app.telemetry import logs


def archive(settings: Settings) -> Archive:
    """Return the Parquet archive for deleted rows, or, with ``settings.archive`` false, one that stores nothing.

    Raises:
        ImportError: the Parquet library is not installed.
    """
    if not settings.archive:
        return NoArchive()
    from workers.archive import ParquetArchive

    return ParquetArchive(settings.archive_folder)


def main() -> int:
    """Run one round of archiving and deletion; return the exit status of the process.

    The status is 0 after the round, or if another process is running one. It is 2, with a message on
    standard error, if the Parquet library is missing, or the database or the archive fails.
    """
    settings = get_settings()
    logs.configure(settings)
    database = Database(settings.database_url, settings)
    try:
        gone = Pruning(database, settings, archive(settings), process_name()).run()
    except HeldElsewhere as error:
        sys.stderr.write(f"steward: {error}\n")
        return 0
    except ImportError as error:
        sys.stderr.write(f"steward: {error}: {command('archive')}, or set STEWARD_ARCHIVE=false\n")
        return EXIT_STATUS
    except (SQLAlchemyError, OSError) as error:
        sys.stderr.write(f"steward: what is due was not deleted: {first_line(error)}\n")
        return EXIT_STATUS
    finally:
        database.dispose()
    for (workload, noun), rows in sorted(gone.items()):
        sys.stderr.write(f"steward: workload {workload}: {rows:,} {noun} deleted\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
