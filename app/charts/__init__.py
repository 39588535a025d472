"""Charts of measurements, predictions and decisions, shared by dashboard pages, image files and reports."""
