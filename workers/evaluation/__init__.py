"""How good decisions are: beside the heuristics, and beside the exact optimum."""
