"""Actuators, which start a command and set its resources: their contract, the installed ones, and a test kit."""
