"""Signing in with a key, which the browser keeps in a cookie until it is closed."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.dashboard.rendering import page
from app.keys import service as secrets
from app.keys.access import LONGEST, NAME
from app.keys.ring import KeyRing

router = APIRouter(include_in_schema=False)
MOST_FIELDS = 4
WRONG = "This is no key of this service, or it was revoked or has expired."


@router.get("/ui/sign-in")
async def form(request: Request) -> Response:
    """The sign-in form as HTML; if no key is required, it says so."""
    state = request.app.state
    return page(
        "sign_in.html",
        section="",
        wrong="",
        key_required=bool(state.keys.any or state.settings.authentication == "required" or state.settings.oidc_issuer),
        signed_in=NAME in request.cookies,
    )


@router.post("/ui/sign-in")
async def sign_in(request: Request) -> Response:
    """Store a valid key in a cookie and redirect to the home page; for any other text show the form with 403."""
    key = _key((await request.body()).decode("utf-8", "replace"))
    if len(key) > LONGEST // 2 or not await _is_valid(request.app.state.keys, key):
        return page("sign_in.html", status=403, section="", wrong=WRONG, key_required=True, signed_in=False)
    answer = RedirectResponse("/", status_code=303)
    secure = request.url.scheme == "https"
    answer.set_cookie(NAME, key, httponly=True, samesite="strict", secure=secure, path="/")
    return answer


def _key(body: str) -> str:
    """The key in a form's body; empty if the form has too many fields."""
    try:
        return parse_qs(body, max_num_fields=MOST_FIELDS).get("key", [""])[0].strip()
    except ValueError:
        return ""


async def _is_valid(keys: KeyRing, text: str) -> bool:
    secret = secrets.parse(text)
    if secret is None or secret.of_run:
        return False
    if keys.get(secret.id) is None:
        await keys.look_again()
    entry = keys.get(secret.id)
    right = secrets.matches(secret.secret, entry and entry.digest)
    return right and entry is not None and not entry.has_expired


@router.post("/ui/sign-out")
async def sign_out() -> Response:
    """Delete the sign-in cookie."""
    answer = RedirectResponse("/ui/sign-in", status_code=303)
    answer.delete_cookie(NAME, httponly=True, samesite="strict", path="/")
    return answer
