"""Runs: live executions, their reports, and the decisions that answer them."""
