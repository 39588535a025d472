"""Callbacks for training libraries: switched on by the environment that a launcher sets, silent without it.

Each module imports its own library, and nothing else imports the module: ``steward_client.callbacks.lightning``, for
example, with the extra ``steward-client[lightning]``.
"""
