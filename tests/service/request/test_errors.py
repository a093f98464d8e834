"""Errors: one form, nothing internal. tests/test_docs.py has the codes that the contract documents."""

import json
from http import HTTPStatus

import pytest

from service.request.errors import CODES, ApiError, problem, problem_of


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_error_has_the_same_members_and_the_headers_of_its_status(code: str) -> None:
    response = problem(code)
    lines, sent = response.whole(b"r1")
    body = json.loads(sent)
    assert b"content-length: %d\r\n" % len(sent) in lines
    assert list(body) == ["type", "title", "status", "detail", "code", "request_id"]
    assert body["type"] == "about:blank"
    newer = {"URI Too Long", "Range Not Satisfiable"}  # than the phrases of Python before 3.13
    assert body["title"] in {HTTPStatus(response.status).phrase, *newer}
    assert (body["status"], body["code"], body["request_id"]) == (response.status, code, "r1")
    assert body["detail"]
    assert b": " not in sent.replace(body["detail"].encode(), b"")
    headers = dict(response.headers)
    assert headers[b"content-type"] == b"application/json"
    assert headers[b"cache-control"] == b"no-store"
    assert headers.get(b"www-authenticate") == (b"ApiKey" if response.status == 401 else None)
    assert headers.get(b"allow") == (b"GET, HEAD" if response.status == 405 else None)
    assert (b"retry-after" in headers) is (response.status in (429, 503))


def test_a_wrong_parameter_is_named() -> None:
    assert list(json.loads(problem("invalid_parameter", parameter="zip_code").whole(b"")[1]))[-1] == "parameter"


def test_a_cache_control_of_its_own_replaces_no_store() -> None:
    response = problem("no_matching_records", headers=((b"cache-control", b"private"),))
    assert [value for name, value in response.headers if name == b"cache-control"] == [b"private"]


def test_an_api_error_says_what_it_is_and_nothing_else_says_anything() -> None:
    assert json.loads(problem_of(ApiError("not_found", "Look elsewhere.")).whole(b"")[1])["detail"] == "Look elsewhere."
    response = problem_of(ValueError("/etc/secret"))
    assert response.status == 500
    assert b"secret" not in response.body
