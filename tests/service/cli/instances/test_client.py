"""Asking an operators' listener: every failure is a sentence that says what to do, within two seconds."""

import socket
import threading
import time

import pytest

from config.settings import Settings
from service.cli.instances import client
from service.cli.instances.client import CallError, OperatorsClient
from service.operators.actions import Purged
from service.operators.overview import Overview
from tests.support.foreign_server import answering
from tests.support.listener import listening
from tests.support.overviews import overview

READ, WRITE = "read-token-of-the-tests", "write-token-of-the-tests"


def asking(url: str, read: str | None = None, write: str | None = None) -> OperatorsClient:
    return OperatorsClient(url, Settings(data_dir="/nowhere", operator_read_token=read, operator_write_token=write))


def refusal(url: str, **tokens: str) -> CallError:
    with pytest.raises(CallError) as refused:
        asking(url, **tokens).get("/overview", Overview)
    return refused.value


@pytest.mark.parametrize(
    ("tokens", "sent"),
    [
        ({}, None),
        ({"read": READ}, f"Bearer {READ}"),
        ({"write": WRITE}, f"Bearer {WRITE}"),
        ({"read": READ, "write": WRITE}, f"Bearer {READ}"),
    ],
    ids=["none", "read", "write", "both"],
)
def test_the_least_token_that_reads_is_sent(tokens: dict[str, str], sent: str | None) -> None:
    with listening() as listener:
        listener.answer("/overview", overview())
        assert asking(listener.url, **tokens).get("/overview", Overview) == overview()
        assert [said.token for said in listener.asked] == [sent]


def test_a_change_is_sent_with_the_write_token_or_not_at_all() -> None:
    with listening() as listener:
        listener.answer("/caches/purge", Purged(3, 4))
        with pytest.raises(CallError, match="set FORECAST_OPERATOR_WRITE_TOKEN"):
            asking(listener.url, read=READ).post("/caches/purge", {}, Purged)
        assert listener.asked == []
        assert asking(listener.url, write=WRITE).post("/caches/purge", {}, Purged) == Purged(3, 4)
        (said,) = listener.asked
        assert (said.method, said.token, said.body) == ("POST", f"Bearer {WRITE}", b"{}")


def test_a_change_names_a_user_with_any_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "Жанна")
    with listening() as listener:
        listener.answer("/caches/purge", Purged(3, 4))
        assert asking(listener.url, write=WRITE).post("/caches/purge", {}, Purged) == Purged(3, 4)


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (401, "missing_token", "set FORECAST_OPERATOR_READ_TOKEN"),
        (401, "invalid_token", "rejects the token in FORECAST_OPERATOR_READ_TOKEN"),
        (401, "missing_api_key", "is a partners' listener"),
        (404, "not_found", "runs an earlier version"),
        (503, "unavailable", "answers 503: What to do."),
    ],
)
def test_a_refusal_says_which_setting_to_set(status: int, code: str, says: str) -> None:
    with listening() as listener:
        listener.refuse(status, code)
        refused = refusal(listener.url)
        assert says in str(refused)
        assert listener.url in str(refused)
        assert refused.code == code


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"<html>", "is not an operators' listener"),
        (b"", "is not an operators' listener"),
        (b"\xff", "is not an operators' listener"),
        (b"{}", "runs another version than this command"),
    ],
    ids=["a page", "nothing", "bytes", "other JSON"],
)
def test_an_unexpected_answer_is_not_from_an_instance(body: bytes, says: str) -> None:
    with listening() as listener:
        listener.answer("/overview", body)
        for status in (200, 302, 500):
            listener.status = status
            expected = says if status < 400 else "is not an operators' listener"
            assert expected in str(refusal(listener.url, read=READ))
        assert len(listener.asked) == 3  # a redirect is not followed


def test_a_url_without_a_listener_is_named() -> None:
    with listening() as listener:
        url = listener.url
    assert str(refusal(url)) == f"{url} refuses connections: no process listens there"
    assert "nowhere.invalid" in str(refusal("http://nowhere.invalid:8001"))


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"], ids=["nothing", "drops"])
def test_a_listener_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(client, "TIMEOUT_SECONDS", 0.3)
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(sent)
                while not done.wait(0.05):
                    if sent:
                        connection.sendall(b" ")

        thread = threading.Thread(target=hang)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        started = time.monotonic()
        assert str(refusal(url)) == f"{url} does not answer within 0.3 s"
        assert time.monotonic() - started < 30
        done.set()
        thread.join()


def test_another_protocol_is_not_an_instance() -> None:
    with answering(b"220 mail.example.org\r\n") as port:
        assert "is not an operators' listener" in str(refusal(f"http://127.0.0.1:{port}"))


def test_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would see the token."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with listening() as listener:
        listener.answer("/overview", overview())
        assert asking(listener.url, read=READ).get("/overview", Overview) == overview()
