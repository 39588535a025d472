"""``steward demo``: a real training under real CPU limits that Steward decides. Uses the HTTP API only."""
