"""Event-driven simulation of requests, batches and servers: B episodes in lock-step, from decision to decision."""
