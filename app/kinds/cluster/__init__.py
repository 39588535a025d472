"""Kind ``cluster``: training jobs that share the GPUs of some nodes."""
