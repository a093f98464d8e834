"""Errors as the contract has them."""

from tests.support.wire import Answer, Wire


def problem(answer: Answer) -> tuple[int, str]:
    """Status and code, having checked the members that every error has."""
    body = answer.json()
    assert list(body)[:6] == ["type", "title", "status", "detail", "code", "request_id"]
    assert (body["type"], body["status"]) == ("about:blank", answer.status)
    assert body["request_id"] == answer.header("x-request-id")
    assert answer.header("content-type") == "application/json"
    return answer.status, body["code"]


def refused(wire: Wire, status: int, code: str) -> Answer:
    """The next answer is this error, whole and in the contract's form, and the connection's last."""
    answer = wire.answer()
    body = answer.json()
    assert (answer.status, body["status"], body["code"]) == (status, status, code)
    assert list(body) == ["type", "title", "status", "detail", "code", "request_id"]
    assert body["request_id"] == answer.header("x-request-id")
    assert answer.header("content-type") == "application/json"
    assert answer.header("cache-control") == "no-store"
    assert answer.header("connection") == "close"
    assert answer.header("server") is None
    assert wire.closes()
    return answer
