"""Policies of the ``workflow`` kind: which waiting task is next.

*strategy*: a priority rule; *scorer*: a network over the candidates; *portfolio*: at each decision one of several such
members, by a calibrated gate; *inspector*: another policy's pick, accepted or put off. All act in plain NumPy, and as
compiled simulators play them. ``artifact.py`` writes and reads them, ``snapshot.py`` starts tasks by them.
"""
