"""Authorities that certificates of servers are verified with; they are read once, as that takes longer than a call."""

import os
import ssl
from functools import cache

import httpx


def ssl_context() -> ssl.SSLContext:
    """TLS context with the certificate authorities of httpx, or those of ``SSL_CERT_FILE`` or ``SSL_CERT_DIR``."""
    return _create_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _create_context(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    return httpx.create_ssl_context()
