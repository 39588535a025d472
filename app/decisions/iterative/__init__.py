"""How workloads of kind `iterative` are served: the next step of one allocation."""
