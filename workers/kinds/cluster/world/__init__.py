"""Clusters as learners and the evaluation want them: played launchers report to the book that the service keeps."""
