"""Windows of time as runs met them: what they reported, rebuilt for simulators."""
