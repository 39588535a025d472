"""What makes a governed workload of a bare command: registering, profiling, fitting, training."""
