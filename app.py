"""Start the web app: `python app.py`. Settings come from the environment (see grpo_studio/settings.py)."""

from __future__ import annotations

import sys

from grpo_studio.errors import StudioError
from grpo_studio.serving import require_free_port
from grpo_studio.settings import Settings
from grpo_studio.ui.app import build_app, serve


def main() -> int:
    """Serve until interrupted; an error that a person can mend is one line on stderr."""
    try:
        settings = Settings.from_env()
        require_free_port(settings.host, settings.port)
        settings.require_writable()
        serve(build_app(settings), settings)
    except StudioError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
