"""Runs: live executions, their reports, and the next step that each report is answered with."""
