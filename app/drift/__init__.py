"""Drift: quantities that have left what the domain model says of them, noticed while runs report."""
