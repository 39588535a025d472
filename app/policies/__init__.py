"""Policies that serve decisions: networks, tables, and their artifacts."""
