"""Chats that are open in browsers: each a process of its own, closed when nobody asks for it any more. No gradio."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Sequence

from grpo_studio.errors import UsageError
from grpo_studio.play.process import PlayProcess
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder

AT_ONCE = 2
"""Chats that may hold memory at the same time, whoever opened them."""
IDLE_SECONDS = 120.0
"""An open page asks every second or two; one that is hidden or gone does not."""
LOOK_EVERY = 5.0


class PlaySessions:
    """Chats by the key that a browser gave them. One object serves all browsers."""

    def __init__(self) -> None:
        self._chats: dict[str, PlayProcess] = {}
        self._lock = threading.Lock()
        self._watched = False
        atexit.register(self.close_all)

    def open(self, key: str, folder: RunFolder, settings: Settings, sides: Sequence[str]) -> PlayProcess:
        """Start a chat, in the place of the one that goes by this key.

        Raises:
            UsageError: too many are open.
        """
        self.close(key)
        with self._lock:
            self._forget_ended()
            if len(self._chats) >= AT_ONCE:
                raise UsageError(f"{len(self._chats)} chats are open already and hold memory; free one of them first")
            chat = self._chats[key] = PlayProcess(folder, settings, sides)
            if not self._watched:
                self._watched = True
                threading.Thread(target=self._close_idle, daemon=True).start()
        return chat

    def chat(self, key: str) -> PlayProcess | None:
        """The chat of a key, which is thereby known to be looked at; None when it was closed."""
        chat = self._chats.get(key)
        if chat is not None:
            chat.asked = time.monotonic()
        return chat

    def close(self, key: str) -> None:
        """Free the memory of a chat; nothing when there is none."""
        with self._lock:
            chat = self._chats.pop(key, None)
        if chat is not None:
            chat.close()

    def close_all(self) -> None:
        """Free all of them: the app ends."""
        for key in list(self._chats):
            self.close(key)

    def _forget_ended(self) -> None:
        for key in [key for key, chat in self._chats.items() if chat.state in ("failed", "ended")]:
            del self._chats[key]

    def _close_idle(self) -> None:
        while True:
            time.sleep(LOOK_EVERY)
            now = time.monotonic()
            for key, chat in list(self._chats.items()):
                if now - chat.asked > IDLE_SECONDS:
                    self.close(key)
