"""A data file from a browser into the home folder: by a route of its own, straight to disk, whole or not at all.

POST of the file's bytes to `UPLOAD_PATH?name=…`; the answer is {"path", "bytes", "known"} or {"error": one line}. The
name is hostile: only its suffix and the letters and digits of its stem are used. The rest of the stored name is a mark
of the content, so that the same file sent twice is one file, and no upload ever replaces another.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterable, Callable
from pathlib import Path, PurePosixPath
from typing import Any

from anyio import to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from grpo_studio.data import LOCAL_SUFFIXES
from grpo_studio.errors import StudioError, UsageError
from grpo_studio.settings import Settings, is_loopback
from grpo_studio.store.folder import slug
from grpo_studio.ui.guard import told
from grpo_studio.ui.same_origin import asked_from_here

UPLOAD_PATH = "/studio/upload"
AT_ONCE = 4
WRITE_BYTES = 1 << 20
SPARE_BYTES = 200_000_000
"""What stays free on the disk: a full one would end the runs."""
FORGOTTEN_AFTER_S = 24 * 3600
MEGABYTE = 1_000_000
_PART = ".upload-"
OFF_BY_ADDRESS = (
    "uploads are off, because this app can be reached from other machines and has no sign-in; put the file into a "
    "folder that the app may read and give its path"
)
Answer = dict[str, Any]


def uploads_off(settings: Settings) -> str | None:
    """Why the one who asks may not put a file on this machine; None when they may.

    Who may run code here (GRPO_STUDIO_EDIT_CODE=on) may do that as well.
    """
    if settings.upload_mb == 0:
        return "uploads are off: GRPO_STUDIO_UPLOAD_MB is 0; put the file on the machine and give its path"
    alone = is_loopback(settings.host) and asked_from_here.get()
    return None if alone or settings.edit_code else OFF_BY_ADDRESS


def upload_terms(settings: Settings) -> Answer:
    """{"off", "most_bytes", "suffixes"}: what the page should know before it sends a file."""
    return {
        "off": uploads_off(settings),
        "most_bytes": settings.upload_mb * MEGABYTE,
        "suffixes": list(LOCAL_SUFFIXES),
        "path": UPLOAD_PATH,
    }


def uploaded(settings: Settings, most: int = 20) -> list[str]:
    """Paths of the newest uploads, the newest first."""
    try:
        found = [path for path in settings.uploads.iterdir() if path.name.endswith(LOCAL_SUFFIXES) and path.is_file()]
        return [str(path) for path in sorted(found, key=lambda path: -path.stat().st_mtime)[:most]]
    except OSError:
        return []


def split_name(name: str) -> tuple[str, str]:
    """The stem of a file's name without its folders, and its suffix in lower case (`.jsonl.gz` is one).

    Raises:
        UsageError: the suffix is none of a data file's.
    """
    last = PurePosixPath(name.replace("\\", "/")).name
    known = [suffix for suffix in LOCAL_SUFFIXES if last.lower().endswith(suffix) and len(last) > len(suffix)]
    if not known:
        shown = re.sub(r"[^\w.\- ]", "?", name)[-60:]
        raise UsageError(f"{shown!r} is no data file; give one that ends in {', '.join(LOCAL_SUFFIXES)}")
    suffix = max(known, key=len)
    return last[: -len(suffix)], suffix


def stored_name(name: str, digest: str) -> str:
    """The name under which content of this hex digest is kept."""
    stem, suffix = split_name(name)
    plain = slug(stem) if re.search(r"[a-z0-9]", stem.lower()) else "data"
    return f"{plain}-{digest[:12]}{suffix}"


class Uploads:
    """Takes files into `settings.uploads`; one object serves all browsers."""

    def __init__(self, settings: Settings, free: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free):
        self.settings = settings
        self._free = free
        self._under_way = 0

    async def take(self, name: str, chunks: AsyncIterable[bytes], announced: int | None) -> Answer:
        """Write the chunks to a file of the uploads folder.

        Raises:
            UsageError: the name is no data file's, or the content is empty, too large or too much for the disk.
            OSError: the disk refuses it.
        """
        split_name(name)
        if self._under_way >= AT_ONCE:
            raise UsageError(f"{AT_ONCE} uploads are under way already; try again when one has ended")
        self._under_way += 1
        try:
            self._prepare(announced)
            return await self._write(name, chunks)
        finally:
            self._under_way -= 1

    def _prepare(self, announced: int | None) -> None:
        folder = self.settings.uploads
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob(f"{_PART}*"):  # of an app that was killed in the middle of one
            if time.time() - part.stat().st_mtime > FORGOTTEN_AFTER_S:
                part.unlink(missing_ok=True)
        self._require_room(announced or 0)
        free = self._free(folder)
        if (announced or 0) + SPARE_BYTES > free:
            raise UsageError(f"the disk has {free // MEGABYTE:,} MB free; free some space, or give the file's path")

    def _require_room(self, size: int) -> None:
        most = self.settings.upload_mb
        if size > most * MEGABYTE:
            raise UsageError(
                f"the file has more than {most:,} MB; put it on the machine and give its path, "
                "or set GRPO_STUDIO_UPLOAD_MB"
            )

    async def _write(self, name: str, chunks: AsyncIterable[bytes]) -> Answer:
        part = self.settings.uploads / f"{_PART}{os.getpid()}-{secrets.token_hex(6)}"
        digest, size = hashlib.sha256(), 0
        try:
            with part.open("xb") as file:
                async for block in _blocks(chunks):
                    size += len(block)
                    self._require_room(size)
                    digest.update(block)
                    await to_thread.run_sync(file.write, block)
            if size == 0:
                raise UsageError("the file is empty; give one with rows")
            path = self.settings.uploads / stored_name(name, digest.hexdigest())
            known = path.is_file()
            if not known:
                part.replace(path)
            return {"path": str(path), "bytes": size, "known": known}
        finally:
            part.unlink(missing_ok=True)


async def _blocks(chunks: AsyncIterable[bytes]) -> AsyncIterable[bytes]:
    """The same bytes in pieces of about a megabyte, as few writes take them."""
    gathered = bytearray()
    async for chunk in chunks:
        gathered += chunk
        if len(gathered) >= WRITE_BYTES:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


def upload_route(settings: Settings) -> Route:
    """The route, to be put behind `SameOrigin`."""
    uploads = Uploads(settings)

    async def take(request: Request) -> Response:
        try:
            if off := uploads_off(settings):
                return JSONResponse({"error": off}, status_code=403)
            length = request.headers.get("content-length", "")
            announced = int(length) if length.isdecimal() and len(length) < 19 else None
            name = request.query_params.get("name", "")[:4000]
            return JSONResponse(await uploads.take(name, request.stream(), announced))
        except ClientDisconnect:
            return Response(status_code=400)
        except StudioError as error:
            return JSONResponse({"error": told("the upload", error)}, status_code=400)
        except OSError as error:
            line = f"the file could not be written: {error.strerror or type(error).__name__}; free some space"
            return JSONResponse({"error": line}, status_code=507)

    return Route(UPLOAD_PATH, take, methods=["POST"])
