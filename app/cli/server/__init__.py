"""`steward serve`: migrations, the API and its workers, which end with it."""
