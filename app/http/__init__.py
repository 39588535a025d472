"""What every request passes, written once for all routes."""
