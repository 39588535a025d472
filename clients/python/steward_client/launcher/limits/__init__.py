"""Limits on local processes: control groups, CPU affinity, duty cycle; and the guard process that removes them."""
