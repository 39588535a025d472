"""What a sample can hold: reports are held to the same, so that a run whose reports were taken can always end."""

from app.kinds.contract.rows import LATEST

__all__ = ["LARGEST", "LATEST", "MOST_BATCHES", "MOST_REQUESTS"]
LARGEST = 1e9
MOST_REQUESTS, MOST_BATCHES = 20_000_000, 1_000_000
