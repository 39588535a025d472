"""Celery tasks: a message brings a job's id, one call runs the job, and its result is stored."""
