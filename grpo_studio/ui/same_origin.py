"""Refuses what a page of another site sends here in a visitor's name (cross-site request forgery).

And says who asks: `asked_from_here` is true while a request is answered that can only come from this machine.
"""

from __future__ import annotations

from contextvars import ContextVar
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from grpo_studio.settings import is_loopback

READING = frozenset({"GET", "HEAD", "OPTIONS"})
PASSED_ON_BY = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
"""Headers that a proxy adds: behind one, an app that is bound to this machine alone is open to others."""
asked_from_here: ContextVar[bool] = ContextVar("asked_from_here", default=False)


class SameOrigin:
    """ASGI middleware: 403 for a request that can change something and comes from a page of another host.

    Browsers name the page's origin with every such request, and no page can change that header. Programs that send
    none (curl, the tests) are no browsers and are let through. Behind a proxy that puts another Host, the browser's own
    word `Sec-Fetch-Site: same-origin` counts as well, which no page can write either.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and scope["method"] not in READING and not _is_ours(Headers(scope=scope)):
            refusal = PlainTextResponse("this request comes from a page of another site", status_code=403)
            await refusal(scope, receive, send)
            return
        token = asked_from_here.set(scope["type"] == "http" and _is_from_here(scope))
        try:
            await self.app(scope, receive, send)
        finally:
            asked_from_here.reset(token)


def _is_ours(headers: Headers) -> bool:
    origin = headers.get("origin")
    if origin is None or headers.get("sec-fetch-site") == "same-origin":
        return True
    return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()


def _is_from_here(scope: Scope) -> bool:
    """Whether the request names this machine in every way that it can, and comes from it.

    The name is looked at as well as the address: a foreign site may point its own name at 127.0.0.1 (DNS rebinding),
    and is then the same origin to a browser.
    """
    headers, client = Headers(scope=scope), scope.get("client")
    if client is None or not is_loopback(client[0]) or any(name in headers for name in PASSED_ON_BY):
        return False
    names = [f"//{headers.get('host', '')}"]
    if "origin" in headers:
        names.append(headers["origin"])
    return all(is_loopback(_host_of(name)) for name in names)


def _host_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
