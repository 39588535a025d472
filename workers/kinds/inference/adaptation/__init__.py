"""Meta-learning of a dynamics model that adapts to the last transitions of a run."""
