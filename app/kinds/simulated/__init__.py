"""Building blocks of a kind's serving half, for decisions that are numbered actions."""

from app.kinds.simulated.kind import numbered_kind
from app.kinds.simulated.layout import Constant, NumberedDecision, NumberedLayout, ReportSamples

__all__ = ["Constant", "NumberedDecision", "NumberedLayout", "ReportSamples", "numbered_kind"]
