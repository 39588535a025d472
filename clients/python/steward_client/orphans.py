"""Runs whose process was killed: they are given what it had kept, and ended."""

from __future__ import annotations

import logging

from .errors import StewardError, Unreachable
from .iterative import Run
from .live import PARTING_SECONDS
from .retry import Retry
from .spool import Spool, left_behind

NEVER_TAKEN = (404, 409, 422)
"""Refusals that stand: the run is no more, has ended, or its reports are none. A key may be given, so it is no such."""
logger = logging.getLogger("steward_client")


def hand_over_earlier(run: Run) -> None:
    """Hand over what processes that are no more have kept of this run's workload; nothing is raised."""
    for spool in left_behind(run.workload, run.service):
        done = unreachable = False
        try:
            _ended(run, spool)
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


def _ended(run: Run, spool: Spool) -> None:
    """Give an earlier run its last reports, and fail it, for its process did not live to its end."""
    brief = Retry(patience_seconds=PARTING_SECONDS)
    earlier = Run.resume(run.client, spool.origin.run, retry=brief, refusals="raise", unknown="omit")
    try:
        kept = spool.kept(earlier.iteration)
        for one in kept:
            earlier.report(*one)
        earlier.fail("its process ended without ending the run")
    finally:
        earlier.close()
    logger.info("run %s: %d reports of a process that is no more are sent; it has failed", earlier.id, len(kept))
