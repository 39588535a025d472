"""Kind ``inference``, its serving half: requests of several users, served in batches by model variants on servers."""
