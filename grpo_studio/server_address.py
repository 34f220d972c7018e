"""Is that text the address of a server? Pure: nothing is asked."""

from __future__ import annotations

from urllib.parse import urlsplit

EXAMPLE = "http://127.0.0.1:8000"


def clean_address(url: str) -> str:
    """The address without the slash at its end, which the routes of the server bring themselves."""
    return url.rstrip("/")


def address_trouble(url: str) -> str | None:
    """What keeps a text from being the address of a vLLM server; None when nothing does."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return f"{url!r} is no address of a server"
    if parts.username is not None or parts.password is not None:
        return "a user and password in the address would be written into the run's files"
    if not good or parts.query or parts.fragment or any(character.isspace() for character in url):
        return f"{url!r} is no address of a server"
    return None
