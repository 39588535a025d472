"""Alembic migrations of Steward's database, and the functions that run them."""
