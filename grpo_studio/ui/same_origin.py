"""Refuses what a page of another site sends here in a visitor's name (cross-site request forgery)."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

READING = frozenset({"GET", "HEAD", "OPTIONS"})


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
        await self.app(scope, receive, send)


def _is_ours(headers: Headers) -> bool:
    origin = headers.get("origin")
    if origin is None or headers.get("sec-fetch-site") == "same-origin":
        return True
    return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
