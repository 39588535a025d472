"""Policies of the ``workflow`` kind: which waiting task is next.

*strategy*: a priority rule; *priority*: seven weights a mechanism. Both act in plain NumPy, and as compiled simulators
play them. ``artifact.py`` writes and reads them.
"""
