"""Ready-made parts of a kind's serving half, for decisions that are numbered actions; see ``NumberedKind``."""

from app.kinds.simulated.kind import NumberedKind
from app.kinds.simulated.layout import Constant, NumberedDecision, NumberedLayout, ReportSamples

__all__ = ["Constant", "NumberedDecision", "NumberedKind", "NumberedLayout", "ReportSamples"]
