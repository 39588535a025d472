"""Runs whose process was killed: they are given what it had kept, and ended."""

from __future__ import annotations

import logging
from dataclasses import replace

from .errors import StewardError
from .iterative import Run
from .live import PARTING_SECONDS
from .retry import Retry
from .spool import Spool, left_behind

logger = logging.getLogger("steward_client")


def hand_over_earlier(run: Run) -> None:
    """Hand over what processes that are no more have kept of this run's workload; nothing is raised."""
    for spool in left_behind(run.workload, run.service):
        done = False
        try:
            _ended(run, spool)
            done = True
        except StewardError as error:  # it has ended, or is no more: nobody takes these reports
            logger.warning("run %s: what an earlier process had kept is refused: %s", spool.origin.run, error)
            done = True
        except Exception:
            logger.exception("run %s: what an earlier process had kept is not sent yet", spool.origin.run)
        spool.close(done=done)


def _ended(run: Run, spool: Spool) -> None:
    """Give an earlier run its last reports, and fail it, for its process did not live to its end."""
    brief = replace(Retry(), patience_seconds=PARTING_SECONDS)
    earlier = Run.resume(run.client, spool.origin.run, retry=brief, unknown="omit")
    try:
        kept = spool.kept(earlier.iteration)
        for one in kept:
            earlier.report(*one)
        earlier.fail("its process ended without ending the run")
    finally:
        earlier.close()
    logger.info("run %s: %d reports of a process that is no more are sent; it has failed", earlier.id, len(kept))
