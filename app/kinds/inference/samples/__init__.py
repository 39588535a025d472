"""Samples of kind `inference`: an execution is measured batches, a log of requests, or, from a run, both."""
