"""Kind ``cluster`` as workers know it."""
