"""Kinds of workloads that Steward allocates for, and the code that they share."""
