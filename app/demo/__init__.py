"""``steward demo``: a real training, really limited, under Steward's decisions. A pure client of the HTTP API."""
