"""The key check over HTTP: whose request continues, and the error that others get."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from config.settings import Settings
from service.base import masking
from service.keys import form
from service.keys.record import ApiKey
from service.keys.store import KeyStore
from tests.support.problems import problem
from tests.support.served import FORECAST, Served, with_keys

GOOD = f"{FORECAST}?zip_code=36436"


@pytest.mark.parametrize("path", [GOOD, "/v1/", "/v1/openapi.json", "/nowhere"])
def test_every_path_needs_a_key(worker: Served, path: str) -> None:
    """Missing or empty, with the scheme in WWW-Authenticate that is ours alone."""
    for answer in (worker.ask(path, key=None), worker.ask(path, key="  ")):
        assert problem(answer) == (401, "missing_api_key")
        assert answer.header("www-authenticate") == "ApiKey"
        assert answer.header("cache-control") == "no-store"


def test_a_key_in_the_query_string_does_not_count(worker: Served) -> None:
    """It would end up in logs."""
    assert problem(worker.ask(f"{GOOD}&x-api-key={worker.key}&api_key={worker.key}", key=None)) == (
        401,
        "missing_api_key",
    )


def test_a_key_in_another_header_does_not_count(worker: Served) -> None:
    """There is no other authentication."""
    assert problem(worker.ask(GOOD, key=None, Authorization=f"Bearer {worker.key}")) == (401, "missing_api_key")


def test_two_key_headers_are_a_400(worker: Served) -> None:
    """Also if both are the same good key: which one counts must never be a question."""
    answer = worker.ask_by_wire(GOOD, x_api_key=worker.key)
    assert problem(answer) == (400, "bad_request")
    assert "once" in answer.json()["detail"]


def test_the_name_of_the_key_header_is_in_any_case_and_its_value_trimmed(worker: Served) -> None:
    """As with every header."""
    with worker.wire() as wire:
        answer = wire.send(f"GET {GOOD} HTTP/1.1\r\nHost: a\r\nX-API-KEY: \t {worker.key} \t\r\n\r\n").answer()
    assert answer.status == 200


@pytest.mark.parametrize("damage", ["", "0", "truncated"])
def test_whoever_has_no_right_secret_learns_only_that_the_key_is_not_known(worker: Served, damage: str) -> None:
    """An unknown id, a mistyped key and a truncated one are told apart by nobody."""
    presented = form.generate()[0]
    presented = {"": presented, "0": presented[:-1] + "!", "truncated": presented[:40]}[damage]
    answer = worker.ask(GOOD, key=presented)
    assert problem(answer) == (401, "invalid_api_key")
    assert presented not in answer.body.decode()


async def test_an_expired_and_a_revoked_key_are_told_so_to_their_owner_alone(
    worker: Served, settings: Settings
) -> None:
    """Only the right secret opens what became of a key."""

    async def expired(store: KeyStore) -> tuple[str, ApiKey]:
        return await store.issue("acme", "", datetime.now(UTC) - timedelta(seconds=1))

    async def revoked(store: KeyStore) -> tuple[str, ApiKey]:
        key, record = await store.issue("acme", "", None)
        return key, await store.revoke(record.key_id)

    for make, code in ((expired, "expired_api_key"), (revoked, "revoked_api_key")):
        key, record = await with_keys(settings.keys_url, settings.data_path, make)
        answer = await asyncio.to_thread(worker.ask, GOOD, key=key)
        assert problem(answer) == (401, code)
        guess = _with_other_secret(record.key_id)
        assert problem(await asyncio.to_thread(worker.ask, GOOD, key=guess)) == (401, "invalid_api_key")


def _with_other_secret(key_id: str) -> str:
    """A key of perfect form for `key_id`, with a secret that is not its own."""
    _, parts = form.generate()
    body = f"{masking.LIVE_PREFIX}_{key_id}_{parts.secret}"
    return f"{body}_{form._checksum(body)}"
