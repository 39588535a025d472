"""Idempotency keys: a POST that is repeated is answered as before."""
