"""Heads that are read without the parser say what the parser says; whatever else there is, is the parser's."""

import re
import tracemalloc
from itertools import permutations

import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.connection import learned_heads, limits
from service.connection.learned_heads import Fields, HeaderValues, HeadReader, as_head

USABLE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
LINE = b"GET /v1/x?zip_code=36436 HTTP/1.1"
FIELDS = {
    "presented": b"x-api-key",
    "host": b"host",
    "request_id": b"x-request-id",
    "accept_encoding": b"accept-encoding",
    "if_none_match": b"if-none-match",
    "connection": b"connection",
}


class Parsed:
    """What the real parser makes of a chunk."""

    def __init__(self, chunk: bytes) -> None:
        self.urls: list[bytes] = []
        self.headers: list[tuple[bytes, bytes]] = []
        self.ended = 0
        self.refused = False
        self._parser = httptools.HttpRequestParser(self)
        try:
            self._parser.feed_data(chunk)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.refused = True

    def on_url(self, url: bytes) -> None:
        self.urls.append(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_message_complete(self) -> None:
        self.ended += 1

    def is_one_plain_get(self) -> bool:
        parser = self._parser
        return (
            not self.refused
            and self.ended == 1
            and len(self.urls) == 1
            and parser.get_method() == b"GET"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not parser.should_upgrade()
        )


def head(*lines: bytes) -> bytes:
    return b"\r\n".join([LINE, *lines, b"", b""])


def assert_as_parsed(asked: HeaderValues, chunk: bytes) -> None:
    """Every value that matters is there once and the same; nothing that changes what a request is."""
    parsed = Parsed(chunk)
    assert parsed.is_one_plain_get(), chunk
    assert len(parsed.headers) <= limits.MOST_HEADERS
    names = [name for name, _ in parsed.headers]
    for field, name in FIELDS.items():
        sent = [value for key, value in parsed.headers if key == name]
        assert len(sent) <= 1, chunk
        if field == "request_id" and not (sent and USABLE_ID.fullmatch(sent[0])):
            assert not asked.request_id, chunk
        else:
            assert getattr(asked, field) == (sent[0] if sent else None), (field, chunk)
    for name in (b"content-length", b"transfer-encoding", b"expect", b"upgrade", b"te", b"trailer"):
        assert name not in names


def both_read(reader: HeadReader, chunk: bytes) -> bool:
    """Whether `reader` reads it, and then as the parser does. Only heads with a known request line are read."""
    end = chunk.find(b"\r\n")
    asked = reader.read(chunk, end) if chunk[:end] == LINE else None
    if asked is None:
        return False
    assert_as_parsed(asked, chunk)
    if reader.news is not None:
        reader.learn()
    return True


def is_learned(reader: HeadReader, asked: HeaderValues | None) -> bool:
    """Whether it was read like heads before it."""
    return any(asked is template.values for template in reader.templates)


USUAL = (b"Host: forecast.test", b"x-api-key: phf_abc", b"User-Agent: x/1 (y; z)", b"Accept: */*")


def test_heads_like_the_ones_before_are_read_as_a_whole() -> None:
    reader = HeadReader(Fields())
    for number in range(5):
        chunk = head(*USUAL, b"X-Request-Id: r%d" % number, b"traceparent: 00-%d" % number)
        assert both_read(reader, chunk)
        asked = reader.read(chunk, len(LINE))
        assert asked is not None
        assert asked.request_id == b"r%d" % number
    assert reader.news is None
    # what was learned does not stick to heads that lack it
    asked = reader.read(head(*USUAL), len(LINE))
    assert asked is not None
    assert asked.request_id is None


@pytest.mark.parametrize("bad", [b"", b"a/b", b"/", b"a" * 65, b"0" * 1000])
def test_an_id_that_cannot_be_used_is_none_and_does_not_stick(bad: bytes) -> None:
    reader = HeadReader(Fields())
    for request_id in (bad, b"r1", b"r2", bad, b"6f1c2b7e-3d0a-4c55-9a51-0d8f6e2b1c34", bad, b"a" * 64):
        chunk = head(*USUAL, b"X-Request-Id: " + request_id, b"traceparent: 00-" + request_id)
        assert both_read(reader, chunk)
        asked = reader.read(chunk, len(LINE))
        assert asked is not None
        assert (asked.request_id or None) == (None if request_id is bad else request_id)
    assert reader.news is None


def test_each_value_that_differs_is_the_one_of_its_own_head() -> None:
    for names in permutations((b"x-request-id", b"x-api-key", b"if-none-match", b"x-trace")):
        reader = HeadReader(Fields())
        for number in range(5):
            assert both_read(reader, head(b"host: a", *(b"%b: %b-%d" % (name, name, number) for name in names)))
        assert reader.news is None, "it was read like the ones before"


@pytest.mark.parametrize(
    "lines",
    [
        *((b"Connection: upgrade",), (b"Content-Length: 0",), (b"Transfer-Encoding: chunked",)),
        *((b"Proxy-Connection: close",), (b"Expect: 100-continue",), (b"host: again",), (b" folded",), (b"No-Colon",)),
        *((b"Host",), (b"Space : x",), (b"x: \x00",), (b"x: a\rb",), (b"x: a\nb: c",), (b"x: \xe4",), (b"x:y",)),
        *((b"", b"GET / HTTP/1.1", b"Host: x"), ()),
    ],
    ids=repr,
)
def test_whatever_is_not_plain_is_left_to_the_parser(lines: tuple[bytes, ...]) -> None:
    lines = (*USUAL, *lines) if lines else ()
    reader = HeadReader(Fields())
    assert reader.read(head(*lines), len(LINE)) is None
    for number in range(3):
        assert both_read(reader, head(*USUAL, b"x: %d" % number))
    assert reader.read(head(*lines), len(LINE)) is None


@pytest.mark.parametrize("behind", [b"x", b"\r\n", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_chunk_with_something_behind_its_head_is_left_to_the_parser(behind: bytes) -> None:
    reader = HeadReader(Fields())
    for _ in range(3):
        assert both_read(reader, head(*USUAL))
    assert reader.read(head(*USUAL) + behind, len(LINE)) is None
    assert reader.read(head(*USUAL)[:-1], len(LINE)) is None


def test_limits_hold_for_heads_like_the_last_one() -> None:
    reader = HeadReader(Fields())
    many = [b"x-%d: y" % number for number in range(limits.MOST_HEADERS - len(USUAL))]
    for _ in range(3):
        assert both_read(reader, head(*USUAL, *many))
    assert reader.read(head(*USUAL, *many, b"one: more"), len(LINE)) is None
    other = HeadReader(Fields())
    for number in range(3):
        assert both_read(other, head(*USUAL, b"x: %d" % number))
    assert other.read(head(*USUAL, b"x: " + b"y" * limits.MOST_HEADER_BYTES), len(LINE)) is None


def test_what_the_parser_read_is_a_head_again() -> None:
    chunk = head(*USUAL)
    parsed = Parsed(chunk)
    assert as_head(parsed.urls[0], parsed.headers).lower() == chunk.lower()


OTHER_NAMES = (b"Host", b"X-API-Key", b"Accept", b"traceparent", b"TE", b"Content-Length", b"x y", b"", b"Upgrade")
NAMES = st.sampled_from([*FIELDS.values(), *OTHER_NAMES])
VALUES = st.one_of(
    st.sampled_from([b"keep-alive", b"close", b"a", b"0", b"", b" a", b"a ", b"\ta", b"websocket", b"a, b"]),
    st.binary(max_size=4),
)
LINES = st.one_of(
    st.tuples(NAMES, st.sampled_from([b": ", b": ", b": ", b":", b" : ", b""]), VALUES).map(b"".join),
    st.sampled_from(USUAL),
)
HEADS = st.lists(LINES, max_size=5).map(lambda lines: head(*USUAL[:2], *lines))


@settings(max_examples=300, deadline=None)
@given(st.lists(HEADS, min_size=1, max_size=6), st.data())
def test_whatever_is_read_the_parser_reads_the_same(heads: list[bytes], data: st.DataObject) -> None:
    reader = HeadReader(Fields())
    for chunk in heads:
        place = data.draw(st.integers(len(LINE), len(chunk)))
        changed = data.draw(st.sampled_from([b"", b"\r", b"\n", b"\r\n", b"\x00", b"\x7f", b":", b" ", b"x"]))
        both_read(reader, chunk)
        both_read(reader, chunk[:place] + changed + chunk[place + data.draw(st.integers(0, 2)) :])
        both_read(reader, chunk)


def test_names_too_long_to_be_worth_it_are_not_learned() -> None:
    """A matcher takes time and memory in proportion to its names, far more than reading them again."""
    fields = Fields()
    for long in ((b"x" * 5_000,), tuple(b"x-%030d" % number for number in range(90))):
        reader = HeadReader(fields)
        for number in range(5):
            assert both_read(reader, head(*USUAL, *(name + b": %d" % number for name in long)))
    assert fields.matchers == {}


def test_a_connection_begins_with_what_another_from_its_address_taught() -> None:
    """Ten thousand connections of one caller need not learn the same."""
    fields = Fields()
    chunks = [head(*USUAL, b"X-Request-Id: %d" % number) for number in range(4)]

    def asked_first(origin: str, chunk: bytes) -> tuple[HeadReader, HeaderValues | None]:
        reader = HeadReader(fields, origin)
        return reader, reader.read(chunk, len(LINE))

    teacher = HeadReader(fields, "192.0.2.1")
    for chunk in chunks:
        assert both_read(teacher, chunk)
    same, values = asked_first("192.0.2.1", chunks[0])
    assert is_learned(same, values)
    assert same.news is None
    elsewhere, values = asked_first("192.0.2.2", chunks[0])
    assert not is_learned(elsewhere, values)
    # a client that sends something else there is read all the same, and learns as well
    other = HeadReader(fields, "192.0.2.1")
    for number in range(4):
        assert both_read(other, head(b"Host: forecast.test", b"x-api-key: phf_xyz", b"X-Other: %d" % number))
    assert other.news is None


def test_what_is_taught_does_not_fill_the_memory() -> None:
    fields = Fields()
    for number in range(learned_heads._MOST_ADDRESSES + 5):
        reader = HeadReader(fields, f"{number}")
        for chunk in (head(*USUAL), head(*USUAL)):
            assert both_read(reader, chunk)
    assert len(fields.templates) == 5


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("name", [b"Cookie", b"x-request-id", b"x-api-key"])
def test_a_long_head_is_read_and_nothing_of_it_is_kept(name: bytes, learned: bool) -> None:
    reader = HeadReader(Fields())
    other = [line for line in USUAL if not line.startswith(name)]
    for number in range(4 * learned):
        assert both_read(reader, head(*other, b"%b: %d" % (name, number)))
    tracemalloc.start()
    for number in range(8):
        assert reader.read(head(*other, b"%b: %d" % (name, number) + b"x" * 12_000), len(LINE)) is not None
        if reader.news is not None:
            reader.learn()
    mine = [tracemalloc.Filter(True, file) for file in (str(learned_heads.__file__), __file__)]  # not other threads'
    kept = sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces(mine).traces)
    tracemalloc.stop()
    assert kept < 2_000
    for value in (b": " + b"x" * 12_000, b": short"):
        assert both_read(reader, head(*other, name + value))


def test_matchers_do_not_fill_the_memory() -> None:
    fields = Fields()
    for number in range(learned_heads._MOST_MATCHERS + 5):
        assert fields.matcher((b"x-%d" % number,), (), verified=True) is not None
    assert len(fields.matchers) == 5


def test_heads_without_a_verified_key_teach_little_and_use_what_others_taught() -> None:
    """A matcher costs more than a request, and callers without a key could cause any number of them."""
    fields = Fields()

    def read_as(name: bytes, *, verified: bool) -> bool:
        """Whether heads with such a line are read as a whole in the end."""
        reader = HeadReader(fields)
        chunks = [head(*USUAL, b"%b: %d" % (name, number)) for number in range(4)]
        for chunk in chunks[:3]:
            assert reader.read(chunk, len(LINE)) is not None
            reader.learn(verified=verified)
        return is_learned(reader, reader.read(chunks[3], len(LINE)))

    for number in range(learned_heads._MOST_UNVERIFIED + 10):
        assert read_as(b"x-%d" % number, verified=False) is (number < learned_heads._MOST_UNVERIFIED)
    assert len(fields.matchers) == learned_heads._MOST_UNVERIFIED
    assert not read_as(b"x", verified=False)
    assert read_as(b"x", verified=True)
    assert read_as(b"x", verified=False)


def test_several_kinds_of_heads_are_learned_on_one_connection() -> None:
    reader, kinds = HeadReader(Fields()), ((), (b"accept-encoding: gzip, br",), (b'if-none-match: "1"',))
    for number in range(30):
        chunk = head(b"host: a", b"x-api-key: k%d" % (number // 2), *kinds[number % 3], b"x-trace: %d" % number)
        assert both_read(reader, chunk)
        assert is_learned(reader, reader.read(chunk, len(LINE))) or number < 6


def test_unknown_names_do_not_fill_the_memory() -> None:
    """They are read before the key is looked at: neither their number nor their length counts."""
    fields = Fields()
    for number in range(5_000):
        assert fields.of(b"x-%d" % number) == ""
        assert fields.of(b"x-%d-" % number + b"y" * 15_000) == ""
    assert len(fields._known) <= 1_000
    assert sum(map(len, fields._known)) < 200_000
    assert fields.of(b"CONTENT-length") == "unusual"
    assert fields.of(b"x-%s" % (b"y" * 15_000)) == ""
    assert fields.of(b"x " + b"y" * 15_000) == "unusual"


def test_nothing_is_learned_of_a_head_that_was_answered_elsewhere() -> None:
    reader = HeadReader(Fields())
    for number in range(3):
        assert both_read(reader, head(*USUAL, b"x-trace: %d" % number))
    reader.read(head(b"x: y", *USUAL), len(LINE))
    assert reader.news is not None
    assert is_learned(reader, reader.read(head(*USUAL, b"x-trace: 4"), len(LINE)))
    assert reader.news is None


VALIDATORS = (b'"a"', b'W/"a"', b"*", b'"a", "b"', b"", b" ")
CODINGS = (b"gzip", b"gzip, br", b"", b" gzip", b"gzip ")


@pytest.mark.parametrize(
    ("name", "field", "sent"),
    [(b"If-None-Match", "if_none_match", one) for one in VALIDATORS]
    + [(b"Accept-Encoding", "accept_encoding", one) for one in CODINGS],
)
def test_validators_and_codings_may_differ_from_head_to_head(name: bytes, field: str, sent: bytes) -> None:
    reader = HeadReader(Fields())
    for one in (b'"1"', b'"2", b', b'"3"', sent):
        assert both_read(reader, head(*USUAL, name + b": " + one)) is (one == one.strip())
    asked = reader.read(head(*USUAL, name + b": 4"), len(LINE))
    assert is_learned(reader, asked)
    assert getattr(asked, field) == b"4"
