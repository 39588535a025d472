"""Idempotency-Key: a creating request that is repeated is answered as the first time, and done once."""
