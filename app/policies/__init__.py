"""Policies that kinds share: networks, tables, and their artifacts."""
