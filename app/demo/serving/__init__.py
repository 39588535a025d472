"""``steward demo inference``: three real networks behind a small real server, played by rules and by Steward."""
