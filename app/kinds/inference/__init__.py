"""Kind ``inference``: requests of several users, on model variants, in batches, on servers; its serving half."""
