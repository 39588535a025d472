"""Who may do what: API keys, tokens of runs and of an identity provider, scopes, and limits of each tenant."""
