"""Runs of processes that were killed: their stored reports are sent, and the runs are ended as failed."""

from __future__ import annotations

import logging

from .errors import StewardError, Unreachable
from .iterative import Run
from .live import PARTING_SECONDS
from .retry import Retry
from .spool import Spool, left_behind

NEVER_TAKEN = (404, 409, 422)
"""HTTP statuses of final refusals: run deleted, run ended, invalid reports. Others may pass, such as a missing key."""
logger = logging.getLogger("steward_client")


def hand_over_earlier(run: Run) -> None:
    """Send the reports that ended processes stored for runs of this workload, and end these runs. Errors are logged."""
    for spool in left_behind(run.workload, run.service):
        done = unreachable = False
        try:
            _finish_earlier(run, spool)
            done = True
        except StewardError as error:
            logger.warning("run %s: what an earlier process had kept is refused: %s", spool.origin.run, error)
            done = error.status in NEVER_TAKEN
        except Unreachable as error:
            logger.warning("run %s: what an earlier process had kept is not sent yet: %s", spool.origin.run, error)
            unreachable = True
        except Exception:
            logger.exception("run %s: what an earlier process had kept is not sent yet", spool.origin.run)
        finally:
            spool.close(done=done)
        if unreachable:
            return


def _finish_earlier(run: Run, spool: Spool) -> None:
    """Send an earlier run's stored reports and end it as failed; raises StewardError if the service refuses (as if the
    run is gone), Unreachable if it doesn't respond."""
    brief = Retry(patience_seconds=PARTING_SECONDS)
    earlier = Run.resume(run.client, spool.origin.run, retry=brief, refusals="raise", unknown="omit")
    try:
        reports = spool.stored_reports(earlier.iteration)
        for one in reports:
            one.send(earlier)
        earlier.fail("its process ended without ending the run")
    finally:
        earlier.close()
    logger.info("run %s: %d reports of a process that has ended are sent; it has failed", earlier.id, len(reports))
