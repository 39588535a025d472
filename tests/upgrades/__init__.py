"""Databases that earlier releases have left, as SQL text with the answers that the service gave then."""
