"""`python -m workers.prune`: archive and delete what is older than it is kept; for workers and `steward db prune`.

It is a process of its own: it takes its time, and what writes archives stays out of the memory of who starts it.
"""

from __future__ import annotations

import logging
import sys

from sqlalchemy.exc import SQLAlchemyError

from app.database.engine import Database
from app.processes import process_name
from app.retention.service import Archive, HeldElsewhere, NoArchive, Pruning
from app.settings import Settings, get_settings
from app.startup import EXIT_STATUS, first_line
from app.telemetry import logs

logger = logging.getLogger(__name__)


def archive(settings: Settings) -> Archive:
    """Where deleted rows are kept.

    Raises:
        ImportError: what writes it is not installed.
    """
    if not settings.archive:
        return NoArchive()
    from workers.archive import ParquetArchive

    return ParquetArchive(settings.archive_folder)


def main() -> int:
    """One round; the exit status."""
    settings = get_settings()
    logs.configure(settings)
    database = Database(settings.database_url, settings)
    try:
        gone = Pruning(database, settings, archive(settings), process_name()).run()
    except HeldElsewhere as error:
        sys.stderr.write(f"steward: {error}\n")
        return 0
    except ImportError as error:
        sys.stderr.write(f"steward: {error}: pip install 'steward[archive]', or set STEWARD_ARCHIVE=false\n")
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
