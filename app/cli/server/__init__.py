"""`steward serve`: migrations, API and workers from one process, which leaves none behind."""
