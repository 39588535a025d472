"""What browsers are told beside an answer: to run, load, frame and guess nothing that its page does not name."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence

Headers = Sequence[tuple[bytes, bytes]]

POLICY = b"content-security-policy"
NONE = {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'"}
NOTHING = "; ".join(f"{name} {source}" for name, source in NONE.items())
NO_GUESSING = (b"x-content-type-options", b"nosniff")
COMMON: Headers = (
    NO_GUESSING,
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def guarded(headers: Headers) -> Headers:
    """The headers of an answer with those of every answer; a page's own policy stands instead of the common one."""
    own = any(name == POLICY for name, _ in headers)
    return [*headers, *COMMON] if own else [*headers, *COMMON, (POLICY, NOTHING.encode())]


def policy(*, style: str = "", script: str = "", **sources: str) -> dict[str, str]:
    """The header of a page's policy: nothing but one inline style and one script, named by their digests.

    Args:
        style, script: exactly what stands between the tags.
        sources: where else things may come from, by directive: ``img_src="data:"``.
    """
    allowed = {name.replace("_", "-"): source for name, source in sources.items()}
    for directive, text in (("style-src", style), ("script-src", script)):
        if text:
            allowed[directive] = f"'sha256-{_digest(text)}' {allowed.get(directive, '')}".rstrip()
    return {"Content-Security-Policy": "; ".join(f"{name} {found}" for name, found in {**NONE, **allowed}.items())}


def inline(page: str, tag: str) -> str:
    """What stands between a page's first tags of that name; empty where there are none."""
    found = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    return "" if found is None else found[1]


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
