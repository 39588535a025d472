"""What the schema tells of keys: on each operation, which scopes will do, and what it is answered with without them."""

from __future__ import annotations

from typing import Any

from app.keys.access import RUN, need

BEARER = "bearer"
SCHEMES = {
    BEARER: {
        "type": "http",
        "scheme": "bearer",
        "description": "A key (`stw_…`), a run's own token (`stw_run_…`), or a token of the identity provider. A "
        "service without keys, which listens on loopback only, requires none.",
    }
}
NEVER_ASKED = ("401", "403", "429")


def document_access(schema: dict[str, Any]) -> None:
    """Add to each operation what it asks of its caller."""
    schema["components"]["securitySchemes"] = SCHEMES
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            asked = need(method.upper(), path)
            if asked.public:
                operation["security"] = []
                for status in NEVER_ASKED:
                    operation["responses"].pop(status, None)
            else:
                operation["security"] = [{BEARER: [*asked.words, *([RUN] if asked.run else ())]}]
