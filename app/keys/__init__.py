"""Authentication and authorisation: API keys, tokens of runs and of an identity provider, scopes, rate limits."""
