"""Callbacks for training libraries; active if a launcher has set the environment, otherwise without effect.

Each module imports its own library, and nothing else imports the module: ``steward_client.callbacks.lightning``, for
example, with the extra ``steward-client[lightning]``.
"""
