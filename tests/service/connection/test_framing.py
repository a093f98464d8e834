"""Where a request ends: each has one answer, and where its end is in doubt, that answer closes the connection."""

from functools import partial

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.doors import TARGETS, Doors, normalised, request
from tests.support.served import FORECAST, Served

GOOD = f"{FORECAST}?zip_code=36436"
CHUNKED = "Transfer-Encoding: chunked"
CHUNKS = "4\r\nbody\r\n0\r\n\r\n"

# Requests that are answered before their end has arrived, or that have none: method and target, lines, what follows the
# head; status and code.
EARLY: dict[str, tuple[str, list[str], str, int, str]] = {
    "identity": (f"GET {GOOD}", ["Transfer-Encoding: identity"], "", 400, "bad_request"),
    "unknown coding": (f"GET {GOOD}", ["Transfer-Encoding: xchunked"], CHUNKS, 400, "bad_request"),
    "chunked is not last": (f"GET {GOOD}", ["Transfer-Encoding: chunked, gzip"], "0\r\n\r\n", 400, "bad_request"),
    "chunked twice": (f"GET {GOOD}", [CHUNKED, CHUNKED], "0\r\n\r\n", 400, "bad_request"),
    "size of a chunk": (f"GET {GOOD}", [CHUNKED], "zz\r\nbody\r\n0\r\n\r\n", 400, "bad_request"),
    "huge size of a chunk": (f"GET {GOOD}", [CHUNKED], "f" * 17 + "\r\n", 400, "bad_request"),
    "end of a chunk": (f"GET {GOOD}", [CHUNKED], "4\r\nbodyX\r\n0\r\n\r\n", 400, "bad_request"),
    "second chunk": (f"GET {GOOD}", [CHUNKED], "4\r\nbody\r\nzz\r\n", 400, "bad_request"),
    "trailer": (f"GET {GOOD}", [CHUNKED], "0\r\nContent-Length: 9\r\n\r\n", 400, "bad_request"),
    "of a POST": (f"POST {GOOD}", [CHUNKED], "4\r\nbody\r\nzz\r\n", 400, "bad_request"),
    "length and chunks": (f"GET {GOOD}", ["Content-Length: 5", CHUNKED], "0\r\n\r\n", 400, "bad_request"),
    "two lengths": (f"GET {GOOD}", ["Content-Length: 0", "Content-Length: 0"], "", 400, "bad_request"),
    "list of lengths": (f"GET {GOOD}", ["Content-Length: 0, 0"], "", 400, "bad_request"),
    "negative length": (f"GET {GOOD}", ["Content-Length: -1"], "", 400, "bad_request"),
    "huge length": (f"GET {GOOD}", ["Content-Length: 99999999999999999999"], "", 400, "bad_request"),
    "no body": (f"GET {GOOD}", ["Content-Length: 400"], "", 400, "body_not_allowed"),
    "half a body": (f"GET {GOOD}", ["Content-Length: 400"], "half", 400, "body_not_allowed"),
    "half a body of a HEAD": (f"HEAD {GOOD}", ["Content-Length: 400"], "half", 400, ""),
    "half a chunk": (f"GET {GOOD}", [CHUNKED], "190\r\nhalf", 400, "body_not_allowed"),
    "expected body": (f"GET {GOOD}", ["Content-Length: 4", "Expect: 100-continue"], "", 400, "body_not_allowed"),
    "expected chunks": (f"GET {GOOD}", [CHUNKED, "expect: 100-Continue"], CHUNKS, 400, "body_not_allowed"),
    "no path": ("POST /nowhere", ["Content-Length: 400"], "half", 404, "not_found"),
    "method": (f"POST {GOOD}", ["Content-Length: 400"], "half", 405, "method_not_allowed"),
    "chunk of a POST": (f"POST {GOOD}", [CHUNKED], "190\r\nhalf", 405, "method_not_allowed"),
    "wrong key": (f"POST {GOOD}", ["Content-Length: 400", "x-api-key: x"], "half", 400, "bad_request"),
    "tunnel": ("CONNECT forecast.test:443", [], "\x16\x03\x01", 405, "method_not_allowed"),
    "another protocol": ("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET /", [], "", 400, "bad_request"),
    "long address": (f"GET /{'x' * 9_000}", [], "", 414, "uri_too_long"),
    "large header": (f"GET {GOOD}", [f"X: {'x' * 17_000}"], "", 431, "headers_too_large"),
    "folded header": (f"GET {GOOD}", ["X: a", " b"], "", 400, "bad_request"),
    "zero byte": (f"GET {GOOD}", ["X: a\0b"], "", 400, "bad_request"),
}
BEFORE = {"fresh": 0, "warmed": 2, "pipelined": 3}


def early(worker: Served, kind: str) -> str:
    start, lines, behind, *_ = EARLY[kind]
    return "\r\n".join([f"{start} HTTP/1.1", "Host: a", f"x-api-key: {worker.key}", *lines, "", ""]) + behind


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("kind", EARLY)
def test_an_answer_before_the_end_of_its_request_is_the_last(worker: Served, kind: str, before: str) -> None:
    *_, status, code = EARLY[kind]
    asked = BEFORE[before]
    with worker.wire() as wire:
        if before == "pipelined":
            wire.send_until_closed(worker.head(GOOD) * asked + early(worker, kind) + worker.head(GOOD))
        else:
            for _ in range(asked):
                wire.send(worker.head(GOOD))
            wire.send_until_closed(early(worker, kind))
        for _ in range(asked):
            assert wire.answer().status == 200
        answer = wire.answer(head_only=not code)
        assert (answer.status, answer.header("connection")) == (status, "close")
        assert not code or answer.json()["code"] == code
        wire.send_until_closed(worker.head(GOOD))
        assert wire.closes()


@pytest.mark.parametrize("kind", EARLY)
def test_the_cuts_of_a_network_change_no_answer(worker: Served, kind: str) -> None:
    """Each byte comes alone. A good chunk may be answered before the malformed one behind it."""
    *_, status, code = EARLY[kind]

    async def ask() -> bytes:
        connection = Doors(worker, {}, "near").connect()
        for byte in early(worker, kind).encode():
            await connection.feed(bytes([byte]))
        await connection.settle()
        return connection.end()

    written = worker.run(ask)
    assert written.count(b"HTTP/1.1 ") == 1
    assert b"\r\nconnection: close\r\n" in written
    assert (status == 405) is (b"\r\nallow: GET, HEAD\r\n" in written)
    if kind not in ("second chunk", "end of a chunk", "of a POST"):
        assert written.startswith(b"HTTP/1.1 %d " % status)
        assert f'"code":"{code}"'.encode() in written or not code


LINES = [
    [],
    ["Connection: keep-alive"],
    ["Connection: close"],
    ["Content-Length: 0"],
    [CHUNKED],
    ["Transfer-Encoding: gzip, chunked"],
    ["Transfer-Encoding: identity"],
    ["Content-Length: 4"],
    ["Expect: 100-continue"],
    [CHUNKED, "Expect: 100-continue"],
    ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"],
    ["Accept-Encoding: gzip;q=1.5"],
    ["Accept-Encoding: gzip, *;q=0"],
    ["X-Folded: a", " b"],
]
BODIES = [b"", b"0\r\n\r\n", b"body", b"4\r\nbody\r\n0\r\n\r\n", b"0;x=y\r\nA: b\r\n\r\n"]
PATHS = [*TARGETS, "http://forecast.test" + TARGETS[0], "http://a?zip_code=36436", "*", "//v1/", "/nowhere"]

ONE = st.builds(
    lambda target, key, lines, body, method, version: (target, key, lines, body, method, version),
    st.sampled_from(PATHS),
    st.sampled_from(["free", "metered", "unknown", "missing"]),
    st.sampled_from(LINES),
    st.sampled_from(BODIES),
    st.sampled_from(["GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "PURGE", "FETCH"]),
    st.sampled_from(["1.1", "1.1", "1.1", "1.0"]),
)


async def _answers(doors: Doors, chunks: list[bytes]) -> bytes:
    await doors.look_at_keys()
    connection = doors.connect()
    for chunk in chunks:
        await connection.feed(chunk)
        await connection.settle()
    return connection.end()


def sent_as(doors: Doors, one: tuple[str, str, list[str], bytes, str, str]) -> bytes:
    target, key, lines, body, method, version = one
    return request(target, doors.keys[key], *lines, method=method, version=version) + body


@given(asked=st.lists(ONE, min_size=1, max_size=3), cuts=st.lists(st.integers(1, 900), max_size=4))
@example(
    asked=[
        (TARGETS[3], "free", [CHUNKED, "Expect: 100-continue"], b"", "GET", "1.1"),
        (GOOD, "free", [], b"", "GET", "1.1"),
    ],
    cuts=[*range(400)],
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_requests_have_the_same_answers_wherever_a_network_cuts_them(
    doors: Doors, asked: list[tuple[str, str, list[str], bytes, str, str]], cuts: list[int]
) -> None:
    """One after the other on a connection. A body that is late is answered early, which closes the connection: there
    is no cut in one."""
    sent, bodies = b"", set[int]()
    for one in asked:
        sent += sent_as(doors, one)
        end, (_, _, lines, body, _, _) = len(sent), one
        bodies |= set(range(end - len(body), end + 4 if "Content-Length: 4" in lines else end))
        if any(line.startswith("Transfer-Encoding: ") for line in lines):
            bodies.add(end - len(body))  # the next request is taken for chunks that are missing
    ends = sorted({cut for cut in cuts if cut < len(sent)} - bodies | {len(sent)})
    whole = doors.send([sent])
    in_parts = doors.send([sent[start:end] for start, end in zip([0, *ends], ends, strict=False)])
    assert normalised(in_parts) == normalised(whole)


@given(one=ONE, warmed=st.integers(0, 2), at_once=st.booleans())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_request_has_the_same_answer_on_a_fresh_and_on_a_warmed_connection(
    doors: Doors, one: tuple[str, str, list[str], bytes, str, str], warmed: int, at_once: bool
) -> None:
    sent, good = sent_as(doors, one), request(TARGETS[0], doors.keys["free"])
    chunks = [good * warmed + sent] if at_once else [*[good] * warmed, sent]
    alone, warm = (doors.running.run(partial(_answers, doors, pieces)) for pieces in ([sent], chunks))
    assert warm.count(b"HTTP/1.1 ") == warmed + alone.count(b"HTTP/1.1 ")
    assert normalised(warm).endswith(normalised(alone))


@pytest.mark.parametrize("target", ["/v1/", "*"])
@pytest.mark.parametrize("before", ["", "body", "chunks"])
def test_a_method_unknown_to_the_parser_is_a_405_wherever_it_is_cut(doors: Doors, before: str, target: str) -> None:
    bodies = {
        "": b"",
        "body": request("/v1/", doors.keys["free"], "Content-Length: 4", method="POST") + b"body",
        "chunks": request("/v1/", doors.keys["free"], CHUNKED, method="POST") + b"4\r\nbody\r\n0\r\n\r\n",
    }
    first, sent = bodies[before], request(target, doors.keys["free"], method="FETCH")
    for cut in range(len(first), len(first) + 8):
        reported = doors.send([(first + sent)[:cut], (first + sent)[cut:]] if cut else [sent])
        assert reported.count(b"HTTP/1.1 405 ") == reported.count(b"HTTP/1.1 ") == 1 + bool(before)
