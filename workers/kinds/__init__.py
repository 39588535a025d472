"""The kinds that can be learned: how each is fitted, simulated, trained and judged."""
