"""Simulators that a learner's loop is compiled together with; the optional extra ``jax``."""
