"""A stand-in for the Hub: a real HTTP server on loopback that speaks as much of its API as the libraries here ask for.

Use: `pytest_plugins = ("hub_stand_in",)` in a test module, then the fixture `hub`. It turns the Hub's libraries of
this process to the server, with a cache and a home of their own, so a test calls the code as it is:

    def test_it(hub: HubStandIn) -> None:
        hub.add("dataset", "alice/sums", {"train.jsonl": '{"prompt": "1 + 1", "answer": "2"}'})
        hub.add("model", "alice/tiny", tiny_model, gated=True)    # a folder will do, too

The metadata of a gated repository are public, as on the Hub; its files want a token (`hub.log_in()`). A private one
cannot be told from one that is missing. `hub.fault = "down"` breaks off every connection, `"hang"` never answers, a
number is the status of every answer, bytes are what the API says to all. `hub.asked` lists requests, `hub.sent` counts
the bytes of files. `hub.env` is the environment for a child process. With the token repositories of alice can be made,
uploaded to and deleted (`hub_uploads`); `hub.broken["commit"] = 500` lets one kind of request fail.

PYTEST_DONT_REWRITE: it may be imported before pytest is told of it as a plugin.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import hub_uploads
import pytest

TOKEN = "hf_aTokenOfTheStandIn"
SHA = "a" * 40
SPARE = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")


@dataclass
class Repo:
    id: str
    files: dict[str, bytes]
    gated: bool = False
    private: bool = False
    info: dict[str, Any] = field(default_factory=dict)

    def described(self, blobs: bool) -> dict[str, Any]:
        siblings = [
            {"rfilename": name, **({"size": len(data), "blobId": blob_id(data)} if blobs else {})}
            for name, data in self.files.items()
        ]
        gated = "manual" if self.gated else False
        known = {"id": self.id, "sha": SHA, "private": self.private, "gated": gated, "tags": [], "downloads": 0}
        return {**known, "siblings": siblings, **self.info}


def blob_id(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


class HubStandIn:
    """The server and what it holds."""

    def __init__(self, home: Path) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.fault: str | int | bytes | None = None
        self.asked: list[str] = []
        self.sent = 0
        self.broken: dict[str, int] = {}
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._home = home

    @property
    def env(self) -> dict[str, str]:
        """The environment of this process, turned to the stand-in."""
        kept = {name: value for name, value in os.environ.items() if name not in SPARE or name == "HF_TOKEN"}
        return {**kept, "HF_ENDPOINT": self.url, "HF_HOME": str(self._home), "NO_PROXY": "127.0.0.1"}

    def add(self, kind: str, repo_id: str, files: Mapping[str, str | bytes] | Path, **facts: Any) -> None:
        """Put up a repository: `gated`, `private`, and in `info` more of what the API says of it."""
        if isinstance(files, Path):
            files = {str(p.relative_to(files)): p.read_bytes() for p in sorted(files.rglob("*")) if p.is_file()}
        held = {name: data.encode() if isinstance(data, str) else data for name, data in files.items()}
        self.repos[kind, repo_id] = Repo(repo_id, held, **facts)

    def log_in(self) -> None:
        """Give this process (and `env`) the token that opens gated and private repositories."""
        os.environ["HF_TOKEN"] = TOKEN

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(hub: HubStandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            hub.asked.append(f"{self.command} {unquote(self.path)}")
            if hub.fault == "hang":
                hub.closing.wait()
            if hub.fault in ("hang", "down"):
                self.close_connection = True
            elif isinstance(hub.fault, int):
                self._say(hub.fault, {"error": "a fault"})
            elif isinstance(hub.fault, bytes):
                self._send(200, hub.fault, {})
            else:
                self._answer()

        do_HEAD = do_POST = do_DELETE = do_GET

        def _answer(self) -> None:
            parts, query = urlsplit(self.path), parse_qs(urlsplit(self.path).query)
            steps = [unquote(step) for step in parts.path.strip("/").split("/")]
            if self.headers.get("Authorization") not in (None, f"Bearer {TOKEN}"):
                self._refuse(401, None, "Invalid credentials in Authorization header")
            elif hub_uploads.asks_for_one(steps):
                length = int(self.headers.get("Content-Length", 0))
                may = self.headers.get("Authorization") == f"Bearer {TOKEN}"
                status, answer = hub_uploads.answer(hub, self.command, steps, self.rfile.read(length), may)
                self._say(status, answer)
            elif steps[0] == "api" and steps[1] in ("models", "datasets"):
                kind = steps[1].removesuffix("s")
                if len(steps) == 2:
                    self._search(kind, {name: values[0] for name, values in query.items()})
                elif repo := self._repo(kind, "/".join(steps[2:4])):
                    self._about(repo, steps[4:], query)
            else:
                self._resolve(steps)

        def _resolve(self, steps: list[str]) -> None:
            kind = "dataset" if steps[0] == "datasets" else "model"
            steps = steps[1:] if kind == "dataset" else steps
            if len(steps) < 5 or steps[2] != "resolve":
                self._refuse(404, None, "no such page")
            elif repo := self._repo(kind, "/".join(steps[:2])):
                self._file(repo, steps[3], "/".join(steps[4:]))

        def _search(self, kind: str, query: Mapping[str, str]) -> None:
            text, tag = query.get("search", "").lower(), query.get("pipeline_tag")
            found = [r for (k, name), r in hub.repos.items() if k == kind and text in name.lower() and not r.private]
            found = [repo for repo in found if tag in (None, repo.info.get("pipeline_tag", tag))]
            found.sort(key=lambda repo: -repo.info.get("downloads", 0))
            self._say(200, [repo.described(False) for repo in found[: int(query.get("limit", 100))]])

        def _repo(self, kind: str, repo_id: str) -> Repo | None:
            token = self.headers.get("Authorization")
            repo = hub.repos.get((kind, repo_id))
            if repo is not None and (token or not repo.private):
                return repo
            self._refuse(404 if token else 401, "RepoNotFound", "Repository not found")
            return None

        def _open(self, repo: Repo) -> bool:
            if repo.gated and "Authorization" not in self.headers:
                self._refuse(401, "GatedRepo", f"Access to model {repo.id} is restricted.")
                return False
            return True

        def _about(self, repo: Repo, steps: list[str], query: Mapping[str, list[str]]) -> None:
            what = steps[0] if steps else "info"
            if what in ("revision", "tree", "paths-info") and steps[1] not in ("main", SHA):
                self._refuse(404, "RevisionNotFound", f"Invalid rev id: {steps[1]}")
            elif what in ("info", "revision"):
                self._say(200, repo.described("blobs" in query))
            elif self._open(repo):
                folder = "/".join(steps[2:])
                if what == "tree" and folder and not any(name.startswith(f"{folder}/") for name in repo.files):
                    self._refuse(404, "EntryNotFound", "no such folder")
                    return
                recursive = query.get("recursive", ["false"])[0].lower() == "true"
                entries = _entries(repo, folder, recursive) if what == "tree" else _entries(repo, "", True)
                if what == "paths-info":
                    body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                    entries = [entry for entry in entries if entry["path"] in parse_qs(body).get("paths", [])]
                self._say(200, {} if what == "auth-check" else entries)

        def _file(self, repo: Repo, revision: str, name: str) -> None:
            if not self._open(repo):
                return
            if revision not in ("main", SHA):
                self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            elif name not in repo.files:
                self._refuse(404, "EntryNotFound", "Entry not found")
            else:
                data = repo.files[name]
                headers = {"X-Repo-Commit": SHA, "ETag": f'"{blob_id(data)}"', "Accept-Ranges": "bytes"}
                status, wanted = 200, self.headers.get("Range", "").removeprefix("bytes=")
                if wanted:
                    first, _, last = wanted.partition("-")
                    status, end = 206, min(int(last or len(data)) + 1, len(data))
                    headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(data)}"
                    data = data[int(first) : end]
                hub.sent += 0 if self.command == "HEAD" else len(data)
                self._send(status, data, headers)

        def _refuse(self, status: int, code: str | None, message: str) -> None:
            named = {"X-Error-Code": code, "X-Repo-Commit": SHA} if code else {}
            self._send(status, b"", {"X-Error-Message": message, **named})

        def _say(self, status: int, value: Any) -> None:
            self._send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

        def _send(self, status: int, data: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Silent: `asked` has it."""

    return Handler


def _entries(repo: Repo, folder: str, recursive: bool) -> list[dict[str, Any]]:
    start, found = f"{folder}/" if folder else "", {}
    for name, data in repo.files.items():
        steps = name.removeprefix(start).split("/")
        if not name.startswith(start):
            continue
        for depth in range(1, len(steps) if recursive else min(len(steps), 2)):
            path = start + "/".join(steps[:depth])
            found[path] = {"type": "directory", "oid": SHA, "size": 0, "path": path}
        if recursive or len(steps) == 1:
            found[name] = {"type": "file", "oid": blob_id(data), "size": len(data), "path": name}
    return list(found.values())


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubStandIn]:
    """A stand-in without repositories; the Hub's libraries of this process ask it instead of the Hub."""
    from datasets import config
    from huggingface_hub import close_session, constants

    stand_in = HubStandIn(tmp_path / "hf")
    files, home = "{repo_id}/resolve/{revision}/", tmp_path / "hf"
    for name in SPARE:
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for module, settings in (
        (constants, {"ENDPOINT": stand_in.url, "HUGGINGFACE_CO_URL_TEMPLATE": f"{stand_in.url}/{files}{{filename}}"}),
        (constants, {"HF_HUB_CACHE": str(home / "hub"), "HF_TOKEN_PATH": str(home / "token"), "HF_HUB_OFFLINE": False}),
        (config, {"HF_ENDPOINT": stand_in.url, "HUB_DATASETS_URL": f"{stand_in.url}/datasets/{files}{{path}}"}),
        (config, {"HF_DATASETS_CACHE": home / "sets", "DOWNLOADED_DATASETS_PATH": home / "down"}),
        (config, {"EXTRACTED_DATASETS_PATH": home / "out", "HF_HUB_OFFLINE": False}),
    ):
        for name, value in settings.items():
            monkeypatch.setattr(module, name, value)
    close_session()
    yield stand_in
    close_session()
    stand_in.close()
