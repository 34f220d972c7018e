"""The address of the app: is it free, and what to say when it is not. No gradio here."""

from __future__ import annotations

import socket

from grpo_studio.errors import PortTakenError


def require_free_port(host: str, port: int) -> None:
    """Refuse an address that something else listens on.

    Raises:
        PortTakenError: names the port and a free one.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise PortTakenError(
                f"cannot serve on {host}:{port}: {error.strerror or error}; "
                f"stop what listens there or set GRPO_STUDIO_PORT={free_port(host)}"
            ) from error


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nothing listens on at this moment."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
