"""The learning engine: what is learned, what computes it and how it is run are three separate choices.

An agent is a graph of components (`components/`) composed from a small typed config (`algorithms/`), completed from
spaces and bound to a backend (`build.py`, `backends/`), and run by an executor (`execution/`).
"""
