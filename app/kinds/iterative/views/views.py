"""See ``app.kinds.contract.views.Views``."""

from __future__ import annotations

from collections.abc import Sequence

from app.charts.figure import Figure
from app.kinds.contract.views import Alternative, Fact, Hindsight, Learnt, Shown, Views
from app.kinds.iterative.decisions.compiled import Compiled
from app.kinds.iterative.views import hindsight, policy, run, workload


class IterativeViews(Views):
    """Metrics beside what was expected, allocations, the way to targets; curves by resource; a map of the policy."""

    def facts(self, compiled: Compiled, shown: Shown) -> Sequence[Fact]:
        """See ``Views``."""
        return run.facts(compiled, shown)

    def run(self, compiled: Compiled, shown: Shown) -> Sequence[Figure]:
        """See ``Views``."""
        return list(run.figures(compiled, shown))

    def alternatives(self, compiled: Compiled, shown: Shown) -> Sequence[Alternative]:
        """See ``Views``."""
        return run.alternatives(compiled, shown)

    def hindsight(self, compiled: Compiled, shown: Shown) -> Hindsight:
        """See ``Views``."""
        return hindsight.hindsight(compiled, shown)

    def workload(self, compiled: Compiled, learnt: Learnt) -> Sequence[Figure]:
        """See ``Views``."""
        return list(workload.figures(compiled, learnt))

    def policy(self, compiled: Compiled) -> Sequence[Figure]:
        """See ``Views``."""
        return list(policy.figures(compiled))
