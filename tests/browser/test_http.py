"""What the app answers over plain HTTP: no request of another site's page, and no file but the pages' own."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from conftest import ROOT, App
from sample_run import SampleRun


@pytest.fixture(scope="module")
def run(app: App) -> Iterator[SampleRun]:
    run = SampleRun(app.home)
    run.begin()
    run.advance(2)
    yield run
    run.end("run_finished", "all steps done")
    run.writer.close()


def answer(url: str, body: object = None, **headers: str) -> tuple[int, bytes]:
    """Status and body of a GET, or of a POST when there is a body."""
    data = None if body is None else json.dumps(body).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data, {"Content-Type": "text/plain", **names})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def server_call(app: App, page: str, function: str, request: object) -> dict[str, object]:
    """The body with which the page's script calls a server function."""
    config = json.loads(answer(f"{app.url}/config")[1])
    shells = [one["id"] for one in config["components"] if f'data-page="{page}"' in json.dumps(one).replace('\\"', '"')]
    return {"data": request, "component_id": shells[0], "fn_name": function, "session_hash": "test"}


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://evil.example:443"])
def test_a_page_of_another_site_changes_nothing(app: App, run: SampleRun, origin: str) -> None:
    call = server_call(app, "live", "live_stop", {"run": run.folder.run_id})
    status, body = answer(f"{app.url}/gradio_api/component_server", call, Origin=origin)
    assert (status, body) == (403, b"this request comes from a page of another site")
    assert not run.folder.stop_request.exists()


@pytest.mark.parametrize(
    "headers", [{}, {"same": "yes"}, {"Origin": "https://proxy.example", "Sec_Fetch_Site": "same-origin"}]
)
def test_the_pages_own_requests_are_answered(app: App, run: SampleRun, headers: dict[str, str]) -> None:
    own = {"Origin": app.url} if "same" in headers else headers
    call = server_call(app, "live", "live_tick", {"run": run.folder.run_id})
    status, body = answer(f"{app.url}/gradio_api/component_server", call, **own)
    assert status == 200
    assert json.loads(body)["about"]["id"] == run.folder.run_id


def test_no_file_but_the_pages_own_is_served(app: App, run: SampleRun) -> None:
    link = app.home / "link.db"
    link.symlink_to(run.folder.database)
    assets = ROOT / "grpo_studio" / "ui" / "assets"
    paths = [
        run.folder.database, run.folder.config_path, run.folder.log, app.home / "queue.db", link, ROOT / "app.py", "/etc/passwd",
        f"{assets}/../frame.py", f"{assets}/../../../app.py", "app.py", "../app.py",
    ]  # fmt: skip
    for path in paths:
        plain = str(path)
        for form in (
            plain,
            quote(plain),
            plain.replace("..", "..%2f").replace("/", "%2f"),
            plain.replace("..", "%2e%2e"),
        ):
            for route in ("gradio_api/file=", "file=", "gradio_api/file/"):
                status, body = answer(f"{app.url}/{route}{form}")
                assert status in (403, 404) or b"<gradio-app" in body, f"{route}{form}: {status} {body[:80]!r}"
                assert not re.search(rb"SQLite format|root:|def main", body[:4000])
    assert answer(f"{app.url}/gradio_api/file={assets}/start.js")[0] == 200
