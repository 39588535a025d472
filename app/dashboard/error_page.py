"""What a person sees who asks for a page that can't be shown: what is wrong and where to go on, instead of JSON."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import HTMLResponse

from app.dashboard.rendering import page
from app.errors import SignIn, StewardError
from app.keys.cookie import is_page

REMEDIES = {
    403: "Sign in with a key that may do this.",
    404: "It may have been deleted, or the address is not complete.",
    503: "Load the page again in a moment.",
}


def error_page(request: Request, error: StewardError) -> HTMLResponse | None:
    """An error as a page; None for programs, for parts of pages, and for people who are sent to sign in."""
    if not is_page(request.scope) or "hx-request" in request.headers or isinstance(error, SignIn):
        return None
    remedy = REMEDIES.get(error.status, "")
    detail = "" if error.detail.lower() == error.title.lower() else error.detail
    return page("error.html", status=error.status, section="", title=error.title, detail=detail, remedy=remedy)
