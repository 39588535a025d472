"""Launcher: runs a command under Steward's decisions: ``steward-run … -- python train.py``."""
