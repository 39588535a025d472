"""Who gets how many GPUs, and on which nodes: rules that the service and the simulator follow alike."""
