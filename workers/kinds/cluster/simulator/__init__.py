"""A cluster in which jobs train as applications were measured to."""
