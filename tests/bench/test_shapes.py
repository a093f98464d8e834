"""The shapes of traffic: what is asked, what counts, the arithmetic and the picture."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from tests.bench import report
from tests.bench.client import asked_in_turn
from tests.bench.contenders import Contender
from tests.bench.load import Endpoint, Sample
from tests.bench.shapes import chart
from tests.bench.shapes.catalog import CROWDS, NAMES, SHAPE_PEERS, SHAPES, Floor
from tests.bench.shapes.checking import Checked
from tests.bench.shapes.crowds import CrowdClient, waits_of
from tests.bench.shapes.measuring import about_minutes
from tests.bench.shapes.results import Measured, ShapesResults, measured
from tests.bench.stage import BenchError

_OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
_LAST = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\nlast"


def samples(*pairs: tuple[float, float]) -> list[Sample]:
    return [Sample(rate, 0, 1.0, p99, 1e6 / rate, 0.5, 1500.0, 1000) for rate, p99 in pairs]


def shape(floor: Floor | None) -> Measured:
    ours, theirs = samples((100, 4), (50, 3), (90, 8)), samples((100, 2), (100, 1), (100, 4))
    return measured("same", "the <same> bytes", "near", "nginx without Lua", floor, ours, theirs)


def found(*shapes: Measured) -> ShapesResults:
    return ShapesResults(
        made_at="2026-11-23T00:00:00+00:00",
        machine="a machine",
        load=(0.0, 1.0),
        rounds=3,
        seconds=1,
        shapes=list(shapes),
        crowds=[],
        failed={"gzip": "gzip: near answers without gzip"},
        notes={},
        missing={},
    )


@contextlib.contextmanager
def replying(*contents: bytes) -> Iterator[Endpoint]:
    """A server that gives these answers on each connection, and then ends it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve(connection: socket.socket) -> None:
            with connection:
                for answer in contents:
                    if connection.recv(1000):
                        connection.sendall(answer)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(listening.accept()[0],)).start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}", "k")
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            accepting.join()


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with replying(_OK, _LAST) as endpoint:
        yield endpoint


def test_a_shape_has_a_name_of_its_own_and_a_peer_that_can_be_started() -> None:
    assert len(set(NAMES)) == len(SHAPES) + len(CROWDS)
    assert {one.peer for one in SHAPES} <= {peer.name for peer in SHAPE_PEERS}


def test_ratios_are_of_the_same_round() -> None:
    one = shape(None)

    assert (one.rate.median, one.rate.least, one.rate.most) == (0.9, 0.5, 1.0)
    assert (one.p99.median, one.p99.least, one.p99.most) == (2, 2, 3)
    assert one.cost.median == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("floor", "holds"),
    [(None, None), (Floor(0.9, 2), True), (Floor(0.9), True), (Floor(0.91), False), (Floor(0.9, 1.9), False)],
)
def test_a_shape_holds_if_neither_its_rate_nor_its_p99_is_beyond_the_floor(floor: Floor, holds: bool | None) -> None:
    assert shape(floor).holds is holds


def test_results_of_shapes_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    written = found(shape(Floor(0.9, 2)))
    report.save(written, tmp_path / "shapes.json")
    assert msgspec.json.decode((tmp_path / "shapes.json").read_bytes(), type=ShapesResults) == written


def test_the_picture_of_shapes_is_well_formed_and_shows_each_ratio_beside_its_floor() -> None:
    drawn = chart.draw(found(shape(Floor(0.9, 2)), shape(None)))

    texts = [element.text for element in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("the <same> bytes · nginx without Lua") == 2
    assert {"0.90 (0.9)", "2.00 (2)", "0.90", "2.00"} <= set(texts)


def test_a_connection_without_an_answer_has_waited_all_the_time() -> None:
    waits = waits_of([(0.001, 9), (0.004, 3), (None, 0)], seconds=3, broken=0, busy=1.0)

    assert (waits.least, waits.median, waits.longest, waits.unanswered) == (1, 4, 3000, 1)
    assert (waits.fewest, waits.typical) == (0, 3)


def test_a_run_says_how_long_it_takes() -> None:
    assert about_minutes(["same"], rounds=5, seconds=2) == 2
    assert about_minutes(["same"], rounds=60, seconds=2) == 6


def test_requests_go_on_over_a_new_connection_where_the_server_ends_one(server: Endpoint) -> None:
    answers = list(asked_in_turn(server, [b"GET / HTTP/1.1\r\n"] * 5))

    assert answers == [_OK, _LAST, _OK, _LAST, _OK]


def test_a_crowd_counts_what_each_connection_gets_and_which_of_them_break(server: Endpoint) -> None:
    members, broken = CrowdClient(server, b"GET / HTTP/1.1\r\n", 20).run(30)

    assert [member.answers for member in members] == [2] * 20
    assert all(member.waited for member in members)
    assert broken == 20


def checked(name: str, answer: bytes) -> Checked:
    """The check of a shape by somebody who always answers so."""
    shape = next(one for one in SHAPES if one.name == name)
    with replying(answer) as endpoint:
        contender = Contender(name="somebody", group="hit", endpoint=endpoint)
        return Checked(shape, contender, [b"GET / HTTP/1.1\r\n"], "http://nobody")


def test_a_shape_does_not_begin_with_answers_of_another_status() -> None:
    with pytest.raises(BenchError, match="wrong keys: 401: somebody answers / with 200, not 401"):
        checked("401", _LAST)


def test_a_304_has_no_body() -> None:
    not_modified = b"HTTP/1.1 304 Not Modified\r\nconnection: close\r\ncontent-length: 4\r\n\r\n"

    checked("304", not_modified.replace(b"content-length: 4", b"x: y"))
    with pytest.raises(BenchError, match="with a body"):
        checked("304", not_modified + b"body")


def test_a_sample_counts_if_its_answers_are_those_that_were_checked() -> None:
    """wrk does not tell a 200 from a 304: the size does."""
    unauthorised = b"HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno"
    before = checked("401", unauthorised)
    sample = Sample(1000, 0, 1, 1, 1, 0.5, len(unauthorised), 2000)

    before.holds(sample)
    with pytest.raises(BenchError, match="bytes an answer"):
        before.holds(msgspec.structs.replace(sample, size=2.0 * len(unauthorised)))
    with pytest.raises(BenchError, match="1 wrong answers"):
        before.holds(msgspec.structs.replace(sample, bad=1))
