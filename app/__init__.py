"""The service: requests in, decisions out."""

HOST, PORT = "127.0.0.1", 8080
"""Where the API listens by default, for modules that must not import the settings."""
