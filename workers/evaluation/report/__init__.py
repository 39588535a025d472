"""The report of an evaluation for people: one HTML page with tables and plots, which needs nothing from elsewhere."""
