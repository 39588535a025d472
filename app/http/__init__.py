"""HTTP layer shared by all routes."""
