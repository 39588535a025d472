"""Kind ``iterative``, its serving half: allocations of a job that consists of iterations."""
