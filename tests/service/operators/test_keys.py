"""Keys, plans and partners over HTTP, on a real key store."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from config.settings import Settings
from service.keys import audit, form
from service.keys.store import KeyStore, open_key_store
from service.operators.actions import Actions
from service.operators.app import OperatorsApp
from service.operators.keys.backend import KeyBackend
from service.redis.primary import Primary
from tests.service.operators.test_state import WELL, instance
from tests.support.key_store import PEPPER, parsed
from tests.support.operators import KEYS, READ, WRITE, Answer, actions, ask, operators, purge, renew
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import eventually

ACME = {"partner": "acme"}
TERMS = {"areas": ["forecast"], "rate": {"requests": 50, "seconds": 1, "burst": 100}}
QUOTA = {"requests": 1_000_000, "period": "month", "warn_at": 0.8}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyProcess]:
    running = ValkeyProcess(tmp_path_factory.mktemp("keys"), appendonly=True).start()
    yield running
    running.kill()


@pytest.fixture(scope="module")
def shared(server: ValkeyProcess) -> Actions:
    """Each test begins with it as new."""
    return actions(Settings(data_dir="/nowhere"), server.url, server.url)


@pytest.fixture(scope="module")
def built(shared: Actions) -> OperatorsApp:
    return operators(lambda: instance(WELL), read=READ, write=WRITE, keys=KEYS, changes=shared)


@pytest.fixture
async def changes(shared: Actions, server: ValkeyProcess, tmp_path: Path) -> AsyncIterator[Actions]:
    renew(shared, Settings(data_dir=str(tmp_path)), server.url, server.url)
    store = await shared.backend.store()
    await store.redis.call(lambda client: client.flushall())
    yield shared
    await shared.backend.stop()


@pytest.fixture
def app(built: OperatorsApp, changes: Actions) -> OperatorsApp:
    return built


@pytest.fixture
async def store(server: ValkeyProcess, tmp_path: Path, changes: Actions) -> AsyncIterator[KeyStore]:
    """The key store as a command sees it."""
    opened = open_key_store(Primary(server.url), PEPPER, tmp_path)
    yield opened
    await opened.redis.stop()


class Caller:
    """A caller with the keys token."""

    def __init__(self, app: OperatorsApp) -> None:
        self.app = app

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        path, _, query = path.partition("?")
        sent = b"" if body is None else json.dumps(body).encode()
        if sent:
            headers["content_type"] = "application/json"
        return await ask(self.app, path, method, token=KEYS, body=sent, query=query, **headers)

    async def issue(self, **order: Any) -> dict[str, Any]:
        answer = await self("POST", "/keys", {**ACME, **order})
        assert answer.status == 201, answer.body
        issued: dict[str, Any] = answer.json()
        return issued


@pytest.fixture
def call(app: OperatorsApp) -> Caller:
    return Caller(app)


async def works(store: KeyStore, presented: str) -> bool:
    """Whether the store knows the secret of a key as its owner has it."""
    parts = form.parse(presented)
    assert parts is not None
    key = (await store.find(parts.key_id)).key
    return key is not None and key.digest == form.digest(parts.secret, store.pepper) and key.status() == "active"


async def trail(store: KeyStore) -> list[tuple[str, str]]:
    """What was done and by whom, oldest first."""
    return [(line.change.what, line.change.by) async for line in audit.oldest_first(store.redis) if line.change]


# Rights


async def test_the_keys_token_opens_keys_and_nothing_else(app: OperatorsApp) -> None:
    for path in ("/keys", "/plans", "/partners", "/openapi.json"):
        assert (await ask(app, path, token=KEYS)).status == 200
    for path in ("/metrics", "/overview", "/history"):
        assert (await ask(app, path, token=KEYS)).problem() == (403, "not_permitted")
    for path in ("/caches/purge", "/releases/rollback", "/log/sampling"):
        assert (await ask(app, path, "POST", token=KEYS)).problem() == (403, "not_permitted")


@pytest.mark.parametrize("token", [READ, WRITE])
async def test_the_other_tokens_open_no_keys(app: OperatorsApp, token: str) -> None:
    for method, path in (("GET", "/keys"), ("POST", "/keys"), ("PUT", "/plans/basic"), ("GET", "/partners/acme")):
        assert (await ask(app, path, method, token=token)).problem() == (403, "not_permitted")


async def test_without_a_keys_token_the_paths_do_not_exist(changes: Actions) -> None:
    app = operators(lambda: instance(WELL), write=WRITE, changes=changes)
    for path in ("/keys", "/plans", "/partners", "/handover/abc"):
        assert (await ask(app, path, token=WRITE)).problem() == (404, "not_found")


async def test_a_page_of_another_site_does_nothing(app: OperatorsApp) -> None:
    refused = await ask(app, "/keys", token=KEYS, sec_fetch_site="cross-site")
    assert refused.problem() == (403, "cross_site")


async def test_the_index_lists_what_the_keys_token_opens(app: OperatorsApp) -> None:
    listed = (await ask(app, "/", token=KEYS)).json()["endpoints"]
    assert {"/keys", "POST /keys", "PATCH /keys/{key_id}", "PUT /plans/{name}", "DELETE /plans/{name}"} <= set(listed)
    assert "POST /caches/purge" not in listed
    assert "/keys" not in (await ask(app, "/", token=READ)).json()["endpoints"]


async def test_the_description_has_the_parameters_headers_and_the_token(call: Caller) -> None:
    described = (await call("GET", "/openapi.json")).json()
    assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    seen = {
        f"{method} {path}": {parameter["name"] for parameter in operation.get("parameters", ())}
        for path, item in described["paths"].items()
        for method, operation in item.items()
        if path.startswith(("/keys", "/plans", "/partners"))
    }
    for name, parameters in seen.items():
        if not name.startswith(("get", "head")):
            assert {"X-Actor", "If-Match", "If-None-Match"} <= parameters, name
    OpenAPIV31SpecValidator(described).validate()
    assert "requestBody" not in described["paths"]["/keys/{key_id}/revoke"]["post"]
    for name in ("post /keys", "post /keys/{key_id}/rotate"):
        assert "Idempotency-Key" in seen[name]
    assert {"from", "to"} <= seen["get /keys/{key_id}/usage"]
    assert "limit" in seen["get /keys/{key_id}/errors"]
    issued = described["paths"]["/keys"]["post"]
    assert (issued["security"], set(issued["responses"]["201"]["headers"])) == ([{"token": []}], {"ETag", "Location"})
    assert {"200", "201"} <= described["paths"]["/plans/{name}"]["put"]["responses"].keys()


# Issuing


async def test_an_issued_key_works_and_is_shown_once(call: Caller, store: KeyStore) -> None:
    answer = await call("POST", "/keys", {**ACME, "label": "integration", "terms": {**TERMS, "quota": QUOTA}})
    issued = answer.json()
    assert (answer.status, answer.headers["location"]) == (201, f"/keys/{issued['key_id']}")
    assert await works(store, issued["key"])
    shown = await call("GET", f"/keys/{issued['key_id']}")
    assert shown.json()["terms"] == {**TERMS, "quota": QUOTA}
    assert issued["key"].encode() not in shown.body
    assert await trail(store) == [("issued", "operator listener (192.0.2.7)")]


async def test_the_trail_names_the_way_and_whom_the_caller_names(call: Caller, store: KeyStore) -> None:
    await call("POST", "/keys", ACME, x_actor="maria@sales", sec_fetch_site="same-origin")
    assert await trail(store) == [("issued", "operator page (192.0.2.7): maria@sales")]
    for sent in ("José".encode(), "José".encode("latin-1")):  # as curl sends it, and as a browser does
        await call("POST", "/keys", ACME, x_actor=sent.decode("latin-1"))
    assert [by.rpartition(" ")[2] for _, by in await trail(store)][1:] == ["José", "José"]
    refused = await call("POST", "/keys", ACME, x_actor="phf_live_" + "a" * 80)
    assert refused.problem() == (400, "bad_request")


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ({}, "missing required field `partner`"),
        ({"partner": ""}, "length >= 1"),
        ({"partner": "a\tb"}, "partner must be printable"),
        ({"partner": "acme\u3164"}, "partner must be printable"),
        ({**ACME, "ratte": 5}, "unknown field `ratte`"),
        ({**ACME, "terms": {"rates": None}}, "unknown field `rates`"),
        ({**ACME, "terms": {"quota": {**QUOTA, "warnat": 0.5}}}, "unknown field `warnat`"),
        ({**ACME, "terms": {"rate": {"requests": 10**20}}}, "<= 1000000000000000"),
        ({**ACME, "terms": {"rate": {"requests": 5, "seconds": 7}}}, "Invalid enum value 7"),
        ({**ACME, "terms": {"areas": ["forecasts"]}}, "unknown area; the areas are"),
        ({**ACME, "terms": {"areas": []}}, "terms.areas is empty"),
        ({**ACME, "expires_at": "2020-01-01T00:00:00Z"}, "expires_at is in the past"),
        ({**ACME, "expires_at": "2099-01-01"}, "Invalid RFC3339"),
        ({**ACME, "expires_at": "2099-01-01T00:00:00Z", "not_before": "2099-01-01T00:00:00Z"}, "later than not_before"),
        ({**ACME, "deliver": "mail"}, "Invalid enum value 'mail'"),
        ({**ACME, "test": "true"}, "Expected `bool`, got `str`"),
        ({**ACME, "expires_at": "null"}, "Invalid RFC3339"),
        ({**ACME, "terms": {"rate": {"requests": "50"}}}, "Expected `int`, got `str`"),
    ],
)
async def test_a_wrong_order_issues_nothing(call: Caller, order: dict[str, Any], said: str) -> None:
    refused = await call("POST", "/keys", order)
    assert refused.problem() == (400, "invalid_body")
    assert said in refused.json()["detail"]
    assert (await call("GET", "/keys")).json()["total"] == 0


async def test_a_body_nested_too_deeply_is_refused(app: OperatorsApp) -> None:
    body = b"[" * 1500 + b"]" * 1500
    refused = await ask(app, "/keys", "POST", token=KEYS, body=body, content_type="application/json")
    assert refused.problem() == (400, "invalid_body")


@pytest.mark.parametrize(
    "body",
    [b'{"partner":"a","partner":"b"}', b'{"partner":"a","terms":{"rate":null,"rate":null}}'],
    ids=["top", "within"],
)
async def test_a_member_that_is_given_twice_is_refused(app: OperatorsApp, body: bytes) -> None:
    refused = await ask(app, "/keys", "POST", token=KEYS, body=body, content_type="application/json")
    assert refused.problem() == (400, "invalid_body")
    assert "was given twice" in refused.json()["detail"]


async def test_a_request_that_takes_no_body_accepts_an_empty_object_alone(call: Caller) -> None:
    path = f"/keys/{(await call.issue())['key_id']}/resume"
    assert (await call("POST", path, {"reason": "paid"})).problem() == (400, "invalid_body")
    for nothing in (None, dict[str, Any]()):
        assert (await call("POST", path, nothing)).status == 200


async def test_a_missing_body_is_named(call: Caller) -> None:
    refused = await call("POST", "/keys")
    assert refused.problem() == (400, "invalid_body")
    assert "needs a body" in refused.json()["detail"]


async def test_a_plan_that_does_not_exist_is_named(call: Caller) -> None:
    refused = await call("POST", "/keys", {**ACME, "plan": "gold"})
    assert refused.problem() == (400, "unknown_plan")
    assert "No plan gold" in refused.json()["detail"]


async def test_a_repeated_request_gets_the_same_key(call: Caller, store: KeyStore) -> None:
    first, second = [await call("POST", "/keys", ACME, idempotency_key="order-4711") for _ in range(2)]
    assert (first.status, second.status) == (201, 201)
    assert first.json() == second.json()
    assert await works(store, first.json()["key"])
    assert (await call("GET", "/keys")).json()["total"] == 1
    assert len(await trail(store)) == 1


async def test_a_repeated_request_gets_the_same_key_whatever_changed_since(call: Caller) -> None:
    await call("PUT", "/plans/basic", {})
    order = {**ACME, "plan": "basic", "terms": {"quota": QUOTA}}
    first = (await call("POST", "/keys", order, idempotency_key="order-1")).json()
    await call("POST", f"/keys/{first['key_id']}/revoke")
    assert (await call("DELETE", "/plans/basic")).status == 204
    await call("PUT", "/partners/acme", {"terms": {"quota": {**QUOTA, "requests": 5}}})
    assert (await call("POST", "/keys", order, idempotency_key="order-1")).json()["key"] == first["key"]


async def test_a_repeated_request_is_answered_when_its_times_are_over(call: Caller) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    order = {**ACME, "not_before": soon.isoformat()}
    first = await call("POST", "/keys", order, idempotency_key="order-1")
    assert first.status == 201
    await eventually(lambda: datetime.now(UTC) > soon)
    assert (await call("POST", "/keys", order)).problem() == (400, "invalid_body")
    again = await call("POST", "/keys", order, idempotency_key="order-1")
    assert (again.status, again.json()["key"]) == (201, first.json()["key"])


async def test_a_refused_request_can_be_corrected_under_its_idempotency_key(call: Caller) -> None:
    for wrong in ({"plan": "gold"}, {"expires_at": "2020-01-01T00:00:00Z"}):
        assert (await call("POST", "/keys", {**ACME, **wrong}, idempotency_key="order-1")).status == 400
    assert (await call("POST", "/keys", ACME, idempotency_key="order-1")).status == 201


async def test_requests_repeated_at_the_same_time_issue_one_key(call: Caller) -> None:
    sent = [call("POST", "/keys", ACME, idempotency_key="order-1") for _ in range(8)]
    answers = await asyncio.gather(*sent)
    assert {answer.status for answer in answers} == {201}
    assert len({answer.json()["key"] for answer in answers}) == 1
    assert (await call("GET", "/keys")).json()["total"] == 1


async def test_an_idempotency_key_is_for_one_request(call: Caller) -> None:
    await call("POST", "/keys", ACME, idempotency_key="order-4711")
    refused = await call("POST", "/keys", {"partner": "other"}, idempotency_key="order-4711")
    assert refused.problem() == (422, "idempotency_key_reused")
    assert (await call("GET", "/keys")).json()["total"] == 1
    assert (await call("POST", "/keys", ACME, idempotency_key="x" * 201)).problem() == (400, "bad_request")


async def test_the_store_never_has_a_secret(call: Caller, store: KeyStore) -> None:
    issued = (await call("POST", "/keys", ACME, idempotency_key="order-4711")).json()
    linked = await call.issue(deliver="link")
    secret = issued["key"].split("_")[3]
    token = linked["link"].rpartition("/")[2]
    names: Any = await store.redis.call(lambda client: client.keys("*"))
    assert sum(name.startswith(b"k:once:") for name in names) == 2
    for name in names:
        kept = await store.redis.call(lambda client, name=name: client.dump(name))  # type: ignore[misc]
        assert secret.encode() not in kept + name
        assert token.encode() not in kept + name
        if name.startswith(b"k:once:"):
            assert 86_000 < await store.redis.call(lambda client, name=name: client.ttl(name)) <= 86_400  # type: ignore[misc]


@pytest.mark.parametrize("name", ["idempotency_key", "if_match", "x_actor"])
async def test_a_header_that_is_given_twice_is_refused(call: Caller, name: str) -> None:
    refused = await call("POST", "/keys", ACME, **{name: "one", name.upper(): "two"})
    assert refused.problem() == (400, "bad_request")
    assert "was given twice" in refused.json()["detail"]


# Links


async def test_a_link_shows_the_key_once(call: Caller, store: KeyStore) -> None:
    issued = await call.issue(label="integration", deliver="link")
    assert "key" not in issued
    path = issued["link"].removeprefix("http://a")
    assert re.fullmatch("/handover/[0-9A-Za-z]{43}", path)
    for method in ("GET", "HEAD", "GET"):  # as a messenger or a mail scanner opens it
        assert (await ask(call.app, path, method)).status == 200
    opened = await ask(call.app, path, "POST", accept="application/json", content_type="application/json")
    assert await works(store, opened.json()["key"])
    assert (opened.json()["partner"], opened.json()["label"]) == ("acme", "integration")
    assert (await ask(call.app, path, "POST", content_type="application/json")).problem() == (410, "link_used")
    assert [what for what, _ in await trail(store)] == ["issued", "delivered"]


async def test_a_browser_that_opens_a_link_gets_a_page(call: Caller, store: KeyStore) -> None:
    issued = await call.issue(partner="<b>acme</b>", deliver="link")
    path = issued["link"].removeprefix("http://a")
    asked = await ask(call.app, path, accept="text/html")
    assert b'<form method="post">' in asked.body
    assert "form-action 'self'" in asked.headers["content-security-policy"]
    opened = await ask(call.app, path, "POST", accept="text/html", content_type="application/x-www-form-urlencoded")
    found = re.search(rb'value="(phf_live_[0-9A-Za-z_]+)"', opened.body)
    assert found is not None
    assert await works(store, found[1].decode())
    assert b"&lt;b&gt;acme" in opened.body
    assert (opened.headers["cache-control"], opened.headers["referrer-policy"]) == ("no-store", "no-referrer")
    again = await ask(call.app, path, "POST", accept="text/html", content_type="application/x-www-form-urlencoded")
    assert (again.status, b"opened before" in again.body, found[1] in again.body) == (410, True, False)


async def test_of_two_who_open_a_link_at_once_one_gets_the_key(call: Caller) -> None:
    issued = await call.issue(deliver="link")
    path = issued["link"].removeprefix("http://a")
    answers = await asyncio.gather(*(ask(call.app, path, "POST", content_type="application/json") for _ in range(6)))
    assert sorted(answer.status for answer in answers) == [200] + [410] * 5


async def test_a_repeated_request_gets_the_same_link_even_after_it_was_opened(call: Caller) -> None:
    order = {**ACME, "deliver": "link"}
    first = (await call("POST", "/keys", order, idempotency_key="order-1")).json()
    path = first["link"].removeprefix("http://a")
    assert (await ask(call.app, path, "POST", content_type="application/json")).status == 200
    assert (await call("POST", "/keys", order, idempotency_key="order-1")).json()["link"] == first["link"]
    assert (await ask(call.app, path, "POST", content_type="application/json")).problem() == (410, "link_used")


@pytest.mark.parametrize("token", ["short", "0" * 43, "phf_live_x", "%2e%2e"])
async def test_a_guessed_link_shows_nothing(call: Caller, token: str) -> None:
    await call.issue(deliver="link")
    assert (await ask(call.app, f"/handover/{token}", "POST", content_type="application/json")).problem() == (
        410,
        "link_used",
    )


async def test_a_link_to_a_revoked_key_shows_nothing(call: Caller) -> None:
    issued = await call.issue(deliver="link")
    await call("POST", f"/keys/{issued['key_id']}/revoke")
    opened = await ask(call.app, issued["link"].removeprefix("http://a"), "POST", content_type="application/json")
    assert opened.problem() == (410, "link_used")


async def test_a_link_that_cannot_show_its_key_yet_stays_unopened(
    call: Caller, server: ValkeyProcess, tmp_path: Path
) -> None:
    issued = await call.issue(deliver="link")
    path, key_path = issued["link"].removeprefix("http://a"), f"/keys/{issued['key_id']}"
    await call("POST", f"{key_path}/suspend", {"reason": "x"})
    assert (await ask(call.app, path, "POST", content_type="application/json")).problem() == (410, "link_used")
    await call("POST", f"{key_path}/resume")
    settings = Settings(data_dir=str(tmp_path / "b"))
    other = Actions(settings, KeyBackend(settings, server.url, "", b"another pepper than ours"), purge)
    try:
        stranger = operators(lambda: instance(WELL), keys=KEYS, changes=other)
        assert (await ask(stranger, path, "POST", content_type="application/json")).problem() == (503, "unavailable")
    finally:
        await other.backend.stop()
    assert (await ask(call.app, path, "POST", content_type="application/json", x_actor="x" * 300)).status == 200


async def test_a_link_is_opened_by_an_address_and_no_name(call: Caller, store: KeyStore) -> None:
    path = (await call.issue(deliver="link"))["link"].removeprefix("http://a")
    await ask(call.app, path, "POST", content_type="application/json", x_actor="maria@sales")
    assert (await trail(store))[-1] == ("delivered", "link (192.0.2.7)")


async def test_a_link_begins_with_the_address_in_the_settings(server: ValkeyProcess, tmp_path: Path) -> None:
    made = actions(Settings(data_dir=str(tmp_path), handover_url="https://keys.example.com"), server.url)
    try:
        call = Caller(operators(lambda: instance(WELL), keys=KEYS, changes=made))
        assert (await call.issue(deliver="link"))["link"].startswith("https://keys.example.com/handover/")
    finally:
        await made.backend.stop()


# Searching


async def test_keys_are_searched_and_paged_newest_first(call: Caller) -> None:
    await call("PUT", "/plans/basic", {"terms": TERMS})
    ids = [(await call.issue(label=f"Nr {number}", plan="basic"))["key_id"] for number in range(5)]
    await call.issue(partner="other", test=True)
    found: list[str] = []
    cursor = ""
    while cursor is not None:
        page = (await call("GET", f"/keys?partner=acme&limit=2{cursor and f'&cursor={cursor}'}")).json()
        assert page["total"] == 5
        found += [key["key_id"] for key in page["keys"]]
        cursor = page["next_cursor"]
        assert cursor is None or quote(cursor, safe=":~") == cursor
    assert sorted(found) == sorted(ids)
    for query, total in (
        ("plan=basic", 5),
        ("plan=basic&label=nr%203", 1),
        ("status=active", 6),
        ("status=revoked", 0),
        ("partner=other", 1),
        ("area=forecast", 6),
        ("unused_days=0", 5),
        ("unused_days=90", 0),
    ):
        assert (await call("GET", f"/keys?{query}")).json()["total"] == total, query


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("patner=acme", "unknown_parameter"),
        ("status=alive", "invalid_parameter"),
        ("area=forecasts", "invalid_parameter"),
        ("limit=0", "invalid_parameter"),
        ("limit=1001", "invalid_parameter"),
        ("unused_days=-1", "invalid_parameter"),
        ("unused_days=999999999", "invalid_parameter"),
        ("cursor=x", "invalid_parameter"),
        ("partner=acme&partner=other", "duplicate_parameter"),
    ],
)
async def test_a_wrong_search_is_refused(call: Caller, query: str, code: str) -> None:
    assert (await call("GET", f"/keys?{query}")).problem() == (400, code)


async def test_a_damaged_record_is_listed_apart(call: Caller, store: KeyStore) -> None:
    issued = await call.issue()
    await store.redis.call(lambda client: client.set("k:{damagedkey00}", "{"))
    page = (await call("GET", "/keys")).json()
    assert [key["key_id"] for key in page["keys"]] == [issued["key_id"]]
    assert [record["key_id"] for record in page["damaged"]] == ["damagedkey00"]
    refused = await call("GET", "/keys/damagedkey00")
    assert refused.problem() == (503, "unavailable")
    assert "is damaged" in refused.json()["detail"]


# Changing


async def test_a_change_keeps_what_it_leaves_out(call: Caller) -> None:
    await call("PUT", "/plans/pro", {"terms": {"quota": QUOTA}})
    key_id = (await call.issue(terms={**TERMS, "quota": QUOTA}))["key_id"]
    changed = await call("PATCH", f"/keys/{key_id}", {"plan": "pro", "terms": {"quota": None}})
    assert (changed.json()["plan"], changed.json()["terms"]) == ("pro", TERMS)
    ended = await call("PATCH", f"/keys/{key_id}", {"expires_at": "2099-01-01T00:00:00Z"})
    assert (ended.json()["plan"], ended.json()["expires_at"]) == ("pro", "2099-01-01T00:00:00Z")
    freed = await call("PATCH", f"/keys/{key_id}", {"plan": None, "expires_at": None, "terms": {"areas": None}})
    assert (freed.json()["plan"], freed.json()["expires_at"]) == (None, None)
    assert freed.json()["terms"] == {"rate": TERMS["rate"]}


async def test_times_are_kept_in_utc(call: Caller) -> None:
    order = {"not_before": "2098-12-31T23:30:00-05:00", "expires_at": "2099-01-01T00:00:00+05:00"}
    with_end = await call("POST", "/keys", {**ACME, "expires_at": order["expires_at"]})
    assert with_end.json()["expires_at"] == "2098-12-31T19:00:00Z"
    with_begin = await call.issue(not_before=order["not_before"])
    assert with_begin["not_before"] == "2099-01-01T04:30:00Z"
    for name in order:
        refused = await call("POST", "/keys", {**ACME, name: "9999-12-31T23:59:59-12:00"})
        assert refused.problem() == (400, "invalid_body")


async def test_a_key_cannot_end_before_it_begins(call: Caller) -> None:
    key_id = (await call.issue(not_before="2098-01-01T00:00:00Z"))["key_id"]
    refused = await call("PATCH", f"/keys/{key_id}", {"expires_at": "2097-01-01T00:00:00Z"})
    assert refused.problem() == (409, "change_refused")
    assert "begins 2098-01-01 00:00 UTC" in refused.json()["detail"]
    assert (await call("GET", f"/keys/{key_id}")).json()["expires_at"] is None


async def test_an_empty_change_is_refused(call: Caller) -> None:
    key_id = (await call.issue())["key_id"]
    refused = await call("PATCH", f"/keys/{key_id}", {})
    assert refused.problem() == (400, "invalid_body")
    assert "no change requested" in refused.json()["detail"]


async def test_of_two_changes_at_once_one_is_told_so(call: Caller) -> None:
    issued = await call("POST", "/keys", ACME)
    key_id, tag = issued.json()["key_id"], issued.headers["etag"]
    assert (await call("GET", f"/keys/{key_id}")).headers["etag"] == tag
    rates = [{"terms": {"rate": {"requests": number}}} for number in (10, 20)]
    answers = [await call("PATCH", f"/keys/{key_id}", rate, if_match=tag) for rate in rates]
    assert answers[0].status == 200
    assert answers[1].problem() == (412, "precondition_failed")
    assert (await call("GET", f"/keys/{key_id}")).json()["terms"]["rate"]["requests"] == 10
    assert answers[0].headers["etag"] != tag
    assert (await call("PATCH", f"/keys/{key_id}", rates[1], if_match="*")).status == 200
    for path, body in (("suspend", {"reason": "x"}), ("rotate", {"overlap_seconds": 0}), ("revoke", None)):
        assert (await call("POST", f"/keys/{key_id}/{path}", body, if_match=tag)).problem()[0] == 412
    for wrong in ('W/"2"', "2", "x2x", ""):
        assert (await call("PATCH", f"/keys/{key_id}", rates[1], if_match=wrong)).problem()[0] == 412, wrong
    assert (await call("PUT", "/plans/none", {}, if_match="*")).problem()[0] == 412
    await call("PUT", "/plans/one", {})
    assert (await call("PUT", "/plans/one", {}, if_none_match='"x", *')).problem()[0] == 412


async def test_a_key_is_suspended_and_resumed(call: Caller, store: KeyStore) -> None:
    key_id = (await call.issue())["key_id"]
    suspended = (await call("POST", f"/keys/{key_id}/suspend", {"reason": "invoice 4711"})).json()
    assert (suspended["status"], suspended["suspended"]["reason"]) == ("suspended", "invoice 4711")
    assert suspended["suspended"]["by"] == "operator listener (192.0.2.7)"
    refused = await call("PATCH", f"/keys/{key_id}", {"expires_at": None})
    assert refused.problem() == (409, "change_refused")
    assert (await call("POST", f"/keys/{key_id}/resume")).json()["status"] == "active"
    assert [what for what, _ in await trail(store)] == ["issued", "suspended", "resumed"]


async def test_a_rotation_gives_a_new_key_and_an_end_to_the_old(call: Caller, store: KeyStore) -> None:
    old = await call.issue(terms=TERMS)
    order = {"overlap_seconds": 86_400}
    answers = [await call("POST", f"/keys/{old['key_id']}/rotate", order, idempotency_key="leak-1") for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    new = answers[0].json()
    assert (new["rotated_from"], new["old"]["rotated_to"]) == (old["key_id"], new["key_id"])
    assert (new["terms"], new["old"]["expires_at"] is None) == (TERMS, False)
    assert await works(store, new["key"])
    assert await works(store, old["key"])
    again = await call("POST", f"/keys/{old['key_id']}/rotate", order)
    assert again.problem() == (409, "change_refused")


async def test_the_successor_of_a_key_that_works_later_works_no_earlier(call: Caller) -> None:
    old = await call.issue(not_before="2099-01-01T00:00:00Z")
    new = (await call("POST", f"/keys/{old['key_id']}/rotate", {"overlap_seconds": 0})).json()
    assert (new["status"], new["not_before"]) == ("pending", "2099-01-01T00:00:00Z")


async def test_a_rotated_key_can_be_delivered_by_a_link(call: Caller, store: KeyStore) -> None:
    old = await call.issue(test=True)
    order = {"overlap_seconds": 0, "deliver": "link"}
    new = (await call("POST", f"/keys/{old['key_id']}/rotate", order)).json()
    opened = await ask(call.app, new["link"].removeprefix("http://a"), "POST", content_type="application/json")
    assert opened.json()["key"].startswith("phf_test_")
    assert await works(store, opened.json()["key"])
    assert not await works(store, old["key"])


async def test_both_tokens_revoke(call: Caller, store: KeyStore) -> None:
    for token in (KEYS, WRITE):
        issued = await call.issue()
        revoked = await ask(call.app, f"/keys/{issued['key_id']}/revoke", "POST", token=token)
        assert (revoked.status, revoked.json()["status"]) == (200, "revoked")
        assert not await works(store, issued["key"])
    refused = await call("POST", f"/keys/{issued['key_id']}/resume")
    assert refused.problem() == (409, "change_refused")


async def test_a_key_that_does_not_exist_is_a_404_everywhere(call: Caller) -> None:
    await call.issue()
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"plan": None}),
        ("POST", "/rotate", {"overlap_seconds": 0}),
        ("POST", "/suspend", {"reason": "x"}),
        ("POST", "/resume", None),
        ("POST", "/revoke", None),
        ("GET", "/usage", None),
        ("GET", "/errors", None),
    ):
        assert (await call(method, f"/keys/000000000000{path}", body)).problem() == (404, "no_such_key"), path


async def test_a_whole_key_in_a_path_is_not_repeated(call: Caller) -> None:
    issued = await call.issue()
    for path in ("", "/usage", "/errors"):
        refused = await call("GET", f"/keys/{issued['key']}{path}")
        assert refused.problem() == (400, "invalid_key_id")
        assert issued["key"].encode() not in refused.body
        assert parsed(issued["key"]).key_id.encode() in refused.body


# Usage


async def test_usage_is_what_the_owner_sees(call: Caller) -> None:
    await call("PUT", "/plans/basic", {"terms": {"quota": QUOTA}})
    key_id = (await call.issue(plan="basic"))["key_id"]
    usage = (await call("GET", f"/keys/{key_id}/usage?from=2026-11-01&to=2026-11-30")).json()
    assert (usage["key_id"], usage["partner"], usage["days"]) == (key_id, "acme", [])
    assert usage["limits"] == {"rate": None, "quota": "1000000/month", "remaining": 1_000_000, "plan": "basic"}
    refused = await call("GET", f"/keys/{key_id}/usage?form=2026-11-01")
    assert (refused.status, refused.json()["code"]) == (400, "unknown_parameter")
    assert (await call("GET", f"/keys/{key_id}/errors")).json()["errors"] == []


# Plans and partners


async def test_a_plan_is_set_shown_changed_and_removed(call: Caller) -> None:
    created = await call("PUT", "/plans/basic", {"terms": TERMS}, if_none_match="*")
    assert (created.status, created.json()["terms"]) == (201, TERMS)
    assert (await call("PUT", "/plans/basic", {}, if_none_match="*")).problem() == (412, "precondition_failed")
    changed = await call("PUT", "/plans/basic", {"terms": {"quota": QUOTA}}, if_match=created.headers["etag"])
    assert (changed.status, "rate" in changed.json()["terms"]) == (200, False)
    stale = await call("DELETE", "/plans/basic", if_match=created.headers["etag"])
    assert stale.problem() == (412, "precondition_failed")
    assert [plan["name"] for plan in (await call("GET", "/plans")).json()["plans"]] == ["basic"]
    assert (await call("DELETE", "/plans/basic")).status == 204
    for method in ("GET", "DELETE"):
        assert (await call(method, "/plans/basic")).problem() == (404, "no_such_plan")
    assert (await call("PUT", "/plans/basic", {}, if_none_match="*")).status == 201


async def test_a_plan_in_use_is_not_removed(call: Caller) -> None:
    await call("PUT", "/plans/basic", {})
    key_id = (await call.issue(plan="basic"))["key_id"]
    refused = await call("DELETE", "/plans/basic")
    assert refused.problem() == (409, "change_refused")
    assert "1 key uses plan basic" in refused.json()["detail"]
    assert (await call("GET", "/plans/basic")).json()["keys"] == 1
    await call("POST", f"/keys/{key_id}/revoke")
    assert (await call("DELETE", "/plans/basic")).status == 204


async def test_spaces_around_a_name_are_no_part_of_it(call: Caller) -> None:
    for kind in ("plans", "partners"):
        assert (await call("PUT", f"/{kind}/%20basic%20", {})).json()["name"] == "basic"
        assert (await call("GET", f"/{kind}/basic")).status == 200


async def test_a_name_is_the_same_in_each_form_of_its_letters(call: Caller) -> None:
    """Else the keys of one spelling have no limits."""
    composed, decomposed = "Café", "Cafe\u0301"
    assert (await call.issue(partner=decomposed))["partner"] == composed
    assert (await call("PUT", f"/partners/{quote(decomposed)}", {})).json()["name"] == composed
    for name in (composed, decomposed):
        assert (await call("GET", f"/partners/{quote(name)}")).json()["keys"] == 1
    assert (await call("PUT", "/partners/Caf%E9", {})).problem() == (400, "invalid_parameter")


async def test_a_name_of_spaces_is_refused(call: Caller) -> None:
    assert (await call("POST", "/keys", {"partner": "  "})).problem() == (400, "invalid_body")
    assert (await call("PUT", "/partners/%20", {})).problem() == (400, "invalid_parameter")
    key_id = (await call.issue())["key_id"]
    assert (await call("POST", f"/keys/{key_id}/suspend", {"reason": " "})).problem() == (400, "invalid_body")


async def test_limits_are_set_for_a_partner_with_a_slash_in_its_name(call: Caller) -> None:
    assert (await call("PUT", "/partners/AT%2FT", {"terms": {"quota": QUOTA}})).json()["name"] == "AT/T"
    assert (await call("GET", "/partners/AT%2FT")).status == 200
    above = {"quota": {**QUOTA, "requests": 2_000_000}}
    assert (await call("POST", "/keys", {"partner": "AT/T", "terms": above})).problem() == (409, "change_refused")


async def test_each_of_two_who_set_a_plan_is_answered_with_its_own_terms(call: Caller) -> None:
    rates = [{"requests": number, "seconds": 1, "burst": number} for number in range(1, 7)]
    answers = await asyncio.gather(*(call("PUT", "/plans/basic", {"terms": {"rate": rate}}) for rate in rates))
    shown = [
        answer.json()["terms"]["rate"] if answer.status < 300 else rate
        for answer, rate in zip(answers, rates, strict=True)
    ]
    assert shown == rates


async def test_what_reads_every_key_runs_one_at_a_time(call: Caller, changes: Actions) -> None:
    await call("PUT", "/plans/basic", {})
    await call("PUT", "/partners/acme", {})
    async with changes.backend.listing:
        waiting = [
            asyncio.create_task(call(method, path, {} if method == "PUT" else None))
            for method in ("GET", "PUT")
            for path in ("/plans/basic", "/partners/acme")
        ]
        waiting += [asyncio.create_task(call("GET", path)) for path in ("/keys", "/plans", "/partners")]
        await call("GET", "/keys/000000000000")
        await asyncio.wait(waiting, timeout=0.2)
        assert not any(task.done() for task in waiting)
    assert {answer.status for answer in await asyncio.gather(*waiting)} == {200}


@pytest.mark.parametrize("name", ["a%20b", "x" * 65, "%C3%A9"])
async def test_a_name_that_no_plan_can_have_is_refused(call: Caller, name: str) -> None:
    refused = await call("PUT", f"/plans/{name}", {})
    assert refused.problem() == (400, "invalid_parameter")


async def test_limits_of_a_partner_are_set_and_bound_its_keys(call: Caller) -> None:
    created = await call("PUT", "/partners/acme%20inc", {"terms": {"quota": QUOTA}, "contact": "data@acme.example"})
    assert (created.status, created.json()["name"]) == (201, "acme inc")
    assert (await call("GET", "/partners/acme%20inc")).json()["contact"] == "data@acme.example"
    above = {"quota": {**QUOTA, "requests": 2_000_000}}
    refused = await call("POST", "/keys", {"partner": "acme inc", "terms": above})
    assert refused.problem() == (409, "change_refused")
    assert "above the 1000000/month of all keys of acme inc" in refused.json()["detail"]
    await call.issue(partner="acme inc", terms={"quota": QUOTA})
    lower = {"terms": {"quota": {**QUOTA, "requests": 5}}}
    assert (await call("PUT", "/partners/acme%20inc", lower)).problem() == (409, "change_refused")
    stale = await call("PUT", "/partners/acme%20inc", {}, if_match='"77"')
    assert stale.problem() == (412, "precondition_failed")
    assert (await call("GET", "/partners/nobody")).problem() == (404, "no_such_partner")
    assert [one["keys"] for one in (await call("GET", "/partners")).json()["partners"]] == [1]


# An unreachable store


async def test_a_store_that_lost_its_keys_lists_nothing(call: Caller, store: KeyStore) -> None:
    await call("PUT", "/plans/basic", {})
    await store.redis.call(lambda client: client.flushall())
    for path in ("/keys", "/plans", "/plans/basic", "/partners", "/partners/acme"):
        assert (await call("GET", path)).problem() == (503, "unavailable"), path


async def test_while_the_key_store_is_away_nothing_is_half_done(short: Path, tmp_path: Path) -> None:
    server = ValkeyProcess(short / "keys", appendonly=True).start()
    made = actions(Settings(data_dir=str(tmp_path)), server.url)
    call = Caller(operators(lambda: instance(WELL), keys=KEYS, changes=made))
    try:
        key_id = (await call.issue())["key_id"]
        linked = await call.issue(deliver="link")
        server.kill()
        for method, path, body in (
            ("GET", "/keys", None),
            ("POST", "/keys", ACME),
            ("GET", f"/keys/{key_id}", None),
            ("PATCH", f"/keys/{key_id}", {"plan": None}),
            ("PUT", "/plans/basic", {}),
            ("GET", f"/keys/{key_id}/usage", None),
            ("POST", linked["link"].removeprefix("http://a"), {}),
        ):
            refused = await call(method, path, body)
            assert refused.problem() == (503, "unavailable"), path
            assert "retry-after" in refused.headers
        server.start()

        async def opened() -> bool:
            return (await call("POST", linked["link"].removeprefix("http://a"), {})).status == 200

        await eventually(opened)
        assert (await call("GET", "/keys")).json()["total"] == 2
    finally:
        await made.backend.stop()
        server.kill()
