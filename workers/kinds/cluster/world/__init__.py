"""Clusters as learners and the evaluation want them: stepped by the compiled simulator, many at once."""
