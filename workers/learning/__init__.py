"""The learning engine; algorithm, numeric backend and executor are three separate choices.

An agent is a graph of components (`components/`) composed from a small typed config (`algorithms/`), completed from
spaces and bound to a backend (`build.py`, `backends.py`), and run by an executor (`execution/`).
"""
