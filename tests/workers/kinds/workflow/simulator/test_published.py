"""Schedules of other simulators, reproduced.

RLScheduler (Zhang et al. 2020): mean bounded slowdown of ten sequences of Lublin-1 by eleven rules, without and with
its backfilling, to the last of the four digits that the reference holds.

pyss (the simulator in predictsim, Gaussier et al. 2015), EASY on two whole logs: no difference remains, each of
28,481 and 54,006 jobs starts at the same second. It takes three things that papers on EASY leave open, all read from
pyss's source:

* events of one second are taken one by one with a decision after each, submissions before ends, those of one kind in
  the order of the log and of the starts;
* the plan that decisions look at frees a job's processors when its estimate runs out: a job that runs exactly as long
  as estimated frees them at the first event of that second, even if its own end is a later one (without this 9 jobs
  on KTH-SP2 and 45 on SDSC-SP2 start at another second);
* a job may overtake that ends exactly when the head is expected to start, and processors are spare that are left over
  when all that ends at that second has ended.

Run times are cut to estimates in these logs, so no job outruns its estimate. EASY with shortest jobs first has
published averages alone; these are met to their digits.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from app.kinds.workflow.scheduling.dispatch import EASY, NONE, RLS
from app.kinds.workflow.scheduling.rules import RULES
from tests.workers.kinds.workflow.simulator.logs import begun, lublin, pyss, slowdown

COLUMNS = {"small": "smallest", "wfp_fixed": "wfp3", "uni_fixed": "unicep"}
FCFS, SJF = RULES.index("fcfs"), RULES.index("sjf")


@pytest.mark.parametrize(("mechanism", "key"), [(NONE, "bf0"), (RLS, "bf1")])
def test_rlscheduler_per_sequence(shared_data: Path, mechanism: int, key: str) -> None:
    golden = json.loads((shared_data / "swf" / "golden_rlscheduler_lublin1.json").read_text())
    columns = golden["per_sequence"][f"lublin_256.swf|{key}"]
    rules = [name for name in columns if not name.endswith("_asis")]
    assert len(rules) == 11
    for name in rules:
        rule = RULES.index(COLUMNS.get(name, name))
        for first, expected in zip(golden["starts"], columns[name], strict=True):
            trace = lublin(shared_data, first)
            result = slowdown(trace, begun(trace, 256, mechanism, rule, FCFS))
            assert round(result, 4) == expected, (name, first)


@pytest.mark.parametrize(("name", "average"), [("KTH-SP2", 92.58), ("SDSC-SP2", 87.87)])
def test_easy_starts_every_job_when_pyss_does(shared_data: Path, name: str, average: float) -> None:
    reference = pyss(shared_data, name)
    start = begun(reference.trace, reference.processors, EASY, FCFS, FCFS)
    assert np.flatnonzero(start - reference.trace.submit != reference.waits).tolist() == []
    assert round(slowdown(reference.trace, start), 2) == average


@pytest.mark.parametrize(
    ("name", "exact", "average"), [("KTH-SP2", True, 49.85), ("SDSC-SP2", True, 56.84), ("KTH-SP2", False, 69.41)]
)
def test_easy_with_shortest_jobs_first(shared_data: Path, name: str, exact: bool, average: float) -> None:
    reference = pyss(shared_data, name)
    start = begun(reference.trace, reference.processors, EASY, FCFS, SJF, exact=exact)
    assert round(slowdown(reference.trace, start), 2) == average
