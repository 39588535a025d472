"""Reports into decisions, as the service answers them."""
