"""Pages (HTML) over the services; read-only, except for loading an example."""
