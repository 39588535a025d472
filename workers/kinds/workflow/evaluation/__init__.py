"""Evaluations of kind ``workflow``: episodes, worlds, schedulers, optimum, charts."""
