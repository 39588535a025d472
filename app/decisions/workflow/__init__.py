"""How workloads of kind `workflow` are served: which tasks start where, and which nodes."""
