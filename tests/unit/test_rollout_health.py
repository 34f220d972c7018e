"""A server that somebody else runs is looked at before the model loads; what is wrong with it is told in one line."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from grpo_studio.errors import RolloutError
from grpo_studio.rollout_health import answers_well, require_healthy
from grpo_studio.rollout_server import free_port

MODELS = {"data": [{"id": "alias", "root": "owner/name"}]}
INFO = {"vllm_config": {"weight_transfer_config": {"backend": "nccl"}}}


class Server(http.server.ThreadingHTTPServer):
    """Answers by path with a status and a JSON document."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.answers: dict[str, tuple[int, Any]] = {
            "/health": (200, {}),
            "/v1/models": (200, MODELS),
            "/server_info?config_format=json": (200, INFO),
        }
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.asked: list[str] = []
        self.delay = 0.0


class Answer(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        time.sleep(self.server.delay)
        status, document = self.server.answers.get(self.path, (404, {}))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def refusal(url: str, model: str | None = None, timeout: float = 0.3) -> str:
    with pytest.raises(RolloutError) as caught:
        require_healthy(url, timeout, model)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_healthy_server_of_the_model_is_taken(server: Server) -> None:
    assert require_healthy(server.url + "/", 1, "owner/name") == server.url
    assert server.asked == ["/health", "/v1/models", "/server_info?config_format=json"]


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "localhost", "ftp://host", "http://", "http://host:99999", "http://[::1"]
)
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    assert refusal(url, timeout=60) == (
        f"rollout.server_url: {url!r} is no address of a server; give one such as http://127.0.0.1:8000"
    )


@pytest.mark.parametrize("models", [{}, {"data": []}, [], "text", None])
def test_an_answer_of_another_shape_is_one_line(server: Server, models: Any) -> None:
    server.answers["/v1/models"] = (200, models)
    assert "is no vLLM server, or one of another version" in refusal(server.url)


def test_a_password_in_the_address_is_not_repeated() -> None:
    message = refusal("http://user:hunter2@127.0.0.1:1/", timeout=60)
    assert "user and password" in message
    assert "hunter2" not in message


def test_an_unknown_host_is_named() -> None:
    assert "names a host that is not known here: 'no-such-host.invalid'" in refusal(
        "http://no-such-host.invalid:8000", timeout=60
    )


def test_a_refused_connection_is_told_after_the_time_limit() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    began = time.monotonic()
    assert refusal(url) == (
        f"nothing listens at {url}, for 0.3 s; start the server, or leave rollout.server_url empty to have one started"
    )
    assert 0.3 <= time.monotonic() - began < 5


def test_a_server_that_is_not_up_yet_is_waited_for(server: Server) -> None:
    server.answers["/health"] = (503, {})
    threading.Timer(0.3, lambda: server.answers.update({"/health": (200, {})})).start()
    require_healthy(server.url, 10)


def test_a_server_that_stays_unwell_is_told(server: Server) -> None:
    server.answers["/health"] = (503, {})
    assert "says that it is not well (503 from /health), for 0.3 s" in refusal(server.url)


def test_another_kind_of_server_is_told_by_its_answer(server: Server) -> None:
    del server.answers["/health"]
    assert f"{server.url}/health answered 404: that is no vLLM server" in refusal(server.url, timeout=60)


def test_a_server_that_does_not_answer_in_time_is_told(server: Server) -> None:
    server.delay = 1.0
    assert f"no answer came at {server.url}, for 0.3 s" in refusal(server.url)


def test_a_server_of_another_model_is_told_with_both_names(server: Server) -> None:
    message = refusal(server.url, "owner/other")
    assert "serves owner/name, and the run trains owner/other" in message


@pytest.mark.parametrize("ours", ["/models/anything", "other/name", "owner/name", None])
def test_names_that_may_mean_the_same_model_are_taken(server: Server, ours: str | None) -> None:
    require_healthy(server.url, 1, ours)


def test_a_server_that_wants_a_key_is_told(server: Server) -> None:
    server.answers["/v1/models"] = (401, {})
    assert "asks for a key, which cannot be given" in refusal(server.url)


def test_a_server_without_the_routes_for_weights_is_told_how_to_start(server: Server) -> None:
    del server.answers["/server_info?config_format=json"]
    assert "VLLM_SERVER_DEV_MODE=1 and --weight-transfer-config" in refusal(server.url)


def test_a_server_without_weight_transfer_is_told_how_to_start(server: Server) -> None:
    server.answers["/server_info?config_format=json"] = (200, {"vllm_config": {"weight_transfer_config": None}})
    assert "takes no weights; start it again with VLLM_SERVER_DEV_MODE=1" in refusal(server.url)


def test_a_quick_look_never_raises(server: Server) -> None:
    assert answers_well(server.url)
    server.answers["/health"] = (500, {})
    assert not answers_well(server.url)
    assert not answers_well(f"http://127.0.0.1:{free_port()}")
