"""What the evaluation has to know of workloads of kind ``iterative``."""
