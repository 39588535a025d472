"""What limits processes on this machine: control groups, CPU affinity, a duty cycle; and the guard that undoes it."""
