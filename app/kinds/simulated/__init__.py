"""Ready-made parts of a kind's serving half, for decisions that are numbered actions; see ``NumberedKind``."""

from app.kinds.simulated.decision import NumberedDecision
from app.kinds.simulated.kind import NumberedKind
from app.kinds.simulated.layout import NumberedLayout
from app.kinds.simulated.policies import Constant
from app.kinds.simulated.samples import ReportSamples

__all__ = ["Constant", "NumberedDecision", "NumberedKind", "NumberedLayout", "ReportSamples"]
