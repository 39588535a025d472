"""What pages show of workloads of kind ``iterative``."""
