"""``steward demo inference``: a small server with three real networks, scheduled by fixed rules and by Steward."""
