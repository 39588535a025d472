"""Runs a command of one's own under Steward's decisions: ``steward-run … -- python train.py``."""
