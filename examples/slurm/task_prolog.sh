#!/bin/sh
# Slurm's TaskProlog: what it prints as `export NAME=value` the task has in its environment.
comment=$(scontrol show job "$SLURM_JOB_ID" --oneliner | sed -n 's/.* Comment=steward:\([a-z0-9._-]*\).*/\1/p')
[ -z "$comment" ] || echo "export STEWARD_WORKLOAD=$comment"
