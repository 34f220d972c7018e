"""Files from a browser: whole or not at all, below the uploads folder, whatever their name says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from grpo_studio.errors import ConfigError, UsageError
from grpo_studio.settings import Settings
from grpo_studio.ui.same_origin import SameOrigin
from grpo_studio.ui.uploads import AT_ONCE, UPLOAD_PATH, Uploads, stored_name, upload_route, uploaded

ROWS = b"Frage;Antwort\n1 + 1?;2\n"


class Sender:
    """Sends bytes to the route as a browser does: `client` is where from, a list of pieces goes without a length."""

    def __init__(self, settings: Settings, client: tuple[str, int] = ("127.0.0.1", 50_000)) -> None:
        self.app = Starlette(routes=[upload_route(settings)], middleware=[Middleware(SameOrigin)])
        self.client = client

    def send(self, name: str, content: bytes | Sequence[bytes] = ROWS, **headers: str) -> httpx.Response:
        async def pieces() -> AsyncIterator[bytes]:
            for piece in content:
                assert isinstance(piece, bytes)
                yield piece

        async def post() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, client=self.client)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7860") as client:
                body = content if isinstance(content, bytes) else pieces()
                names = {key.replace("_", "-"): value for key, value in headers.items()}
                return await client.post(f"{UPLOAD_PATH}?name={quote(name)}", content=body, headers=names)

        return asyncio.run(post())


@pytest.fixture
def page(settings: Settings) -> Sender:
    return Sender(settings)


def stored(settings: Settings) -> list[Path]:
    return sorted(settings.uploads.iterdir()) if settings.uploads.is_dir() else []


def test_a_file_is_stored_under_its_name_and_a_mark_of_its_content(page: Sender, settings: Settings) -> None:
    answer = page.send("Meine Fragen (2).CSV")
    assert answer.status_code == 200
    path = Path(answer.json()["path"])
    assert path.parent == settings.uploads
    assert path.name.startswith("meine-fragen-2-")
    assert path.suffix == ".csv"
    assert path.read_bytes() == ROWS


def test_the_same_content_twice_is_one_file_and_another_never_replaces_it(page: Sender, settings: Settings) -> None:
    first = page.send("a.csv").json()
    again = page.send("a.csv").json()
    other = page.send("a.csv", ROWS * 2).json()
    assert (first["known"], again["known"]) == (False, True)
    assert first["path"] == again["path"] != other["path"]
    assert [path.stat().st_size for path in stored(settings)] in ([23, 46], [46, 23])
    assert set(uploaded(settings)) == {first["path"], other["path"]}


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/cron.d/rows.jsonl", "rows"),
        ("..\\..\\windows\\rows.jsonl", "rows"),
        ("/etc/passwd.jsonl", "passwd"),
        ("con.jsonl", "con"),
        ("a\0b.jsonl", "a-b"),
        ("  .  .jsonl", "data"),
        ("Пример.jsonl", "data"),
        ("<img src=x onerror=alert(1)>.jsonl", "img-src-x-onerror-alert-1"),
        ("x" * 300 + ".jsonl", "x" * 40),
        ("rows.exe.jsonl", "rows-exe"),
        ("-rf *.jsonl", "rf"),
        ("C:rows.jsonl", "c-rows"),
        ("CON.jsonl", "con"),
        ("rows.jsonl/", "rows"),
        ("a.csv.jsonl", "a-csv"),
        ("a\u202egnp.jsonl", "a-gnp"),
    ],
)
def test_a_hostile_name_is_a_plain_one_below_the_uploads_folder(
    page: Sender, settings: Settings, name: str, kept: str
) -> None:
    path = Path(page.send(name, b'{"prompt": "a"}\n').json()["path"])
    assert stored(settings) == [path]
    assert path.name.startswith(f"{kept}-")
    assert path.suffix == ".jsonl"
    assert len(path.name) < 80


@pytest.mark.parametrize(
    "name",
    [
        "rows.jsonl.exe",
        "rows",
        "",
        ".jsonl",
        ".jsonl.gz",
        "rows.py",
        "rows.jsonl\0.exe",
        "rows.csv ",
        "rows.html",
        "jsonl",
        "..",
    ],
)
def test_what_is_no_data_file_by_its_name_is_refused(page: Sender, settings: Settings, name: str) -> None:
    answer = page.send(name)
    assert answer.status_code == 400
    assert "is no data file; give one that ends in .jsonl" in answer.json()["error"]
    assert "\0" not in answer.json()["error"]
    assert stored(settings) == []


def test_an_empty_or_too_large_file_leaves_nothing(settings: Settings) -> None:
    page = Sender(replace(settings, upload_mb=1))
    assert "is empty" in page.send("a.csv", b"").json()["error"]
    announced = page.send("a.csv", b"x" * 1_000_001)
    unannounced = page.send("a.csv", [b"x" * 600_000] * 2)
    whole = page.send("a.csv", b"x" * 1_000_000)
    for answer in (announced, unannounced):
        assert "more than 1 MB" in answer.json()["error"]
    assert [str(path) for path in stored(settings)] == [whole.json()["path"]]


def test_an_upload_that_breaks_off_leaves_nothing(settings: Settings) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"x" * 3_000_000
        assert len(stored(settings)) == 1, "it goes to the disk as it comes"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        asyncio.run(Uploads(settings).take("a.csv", chunks(), None))
    assert stored(settings) == []


def test_a_full_disk_is_told_before_anything_is_written(settings: Settings) -> None:
    async def none() -> AsyncIterator[bytes]:
        raise AssertionError("nothing is to be read")
        yield b""

    with pytest.raises(UsageError, match=r"the disk has 300 MB free; free some space"):
        asyncio.run(Uploads(settings, free=lambda path: 300_000_000).take("a.csv", none(), 200_000_000))
    assert stored(settings) == []


def test_only_a_few_come_in_at_once(settings: Settings) -> None:
    uploads = Uploads(settings)

    async def chunks(go: asyncio.Event) -> AsyncIterator[bytes]:
        yield b"a"
        await go.wait()

    async def many() -> list[object]:
        go = asyncio.Event()
        tasks = [asyncio.create_task(uploads.take(f"a{n}.csv", chunks(go), None)) for n in range(AT_ONCE + 1)]
        while not tasks[-1].done():
            await asyncio.sleep(0)
        go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    *taken, refused = asyncio.run(many())
    assert all(isinstance(answer, dict) for answer in taken)
    assert isinstance(refused, UsageError)


@pytest.mark.parametrize(
    ("host", "client", "headers"),
    [
        ("0.0.0.0", ("127.0.0.1", 1), {}),
        ("127.0.0.1", ("10.0.0.7", 1), {}),
        ("127.0.0.1", ("127.0.0.1", 1), {"x_forwarded_for": "10.0.0.7"}),
        ("127.0.0.1", ("127.0.0.1", 1), {"host": "rebound.example"}),
    ],
)
def test_nobody_else_can_put_a_file_here(
    settings: Settings, host: str, client: tuple[str, int], headers: dict[str, str]
) -> None:
    reachable = replace(settings, host=host)
    answer = Sender(reachable, client).send("a.csv", **headers)
    assert answer.status_code == 403
    assert "uploads are off, because this app can be reached from other machines" in answer.json()["error"]
    assert Sender(replace(reachable, edit_code=True), client).send("a.csv", **headers).status_code == 200


def test_a_page_of_another_site_uploads_nothing(page: Sender, settings: Settings) -> None:
    answer = page.send("a.csv", origin="http://evil.example")
    assert answer.status_code == 403
    assert stored(settings) == []


def test_uploads_can_be_limited_and_switched_off(settings: Settings) -> None:
    assert Settings.from_env({}).upload_mb == 2048
    off = Settings.from_env({"GRPO_STUDIO_UPLOAD_MB": "0"})
    answer = Sender(replace(settings, upload_mb=off.upload_mb)).send("a.csv")
    assert (answer.status_code, stored(settings)) == (403, [])
    for text in ("many", "-1", "1.5", "²", "9" * 12):
        with pytest.raises(ConfigError, match=r"GRPO_STUDIO_UPLOAD_MB is .*; give a number of megabytes"):
            Settings.from_env({"GRPO_STUDIO_UPLOAD_MB": text})


def test_the_stored_name_says_nothing_of_where_it_came_from() -> None:
    assert stored_name("C:\\Users\\me\\Rows.JSONL", "0123456789abcdef") == "rows-0123456789ab.jsonl"
