"""Slots as the specification has them, and what nodes say of them, sense or nonsense."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.server_lists import Node
from service.redis.cluster.slots import SLOTS, Redirect, redirect, slot_map, slot_of

ASKED = Node("h1", 7000)


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        # of the specification: its CRC-16 of 123456789 is 0x31C3
        ("123456789", 0x31C3 % SLOTS),
        # as CLUSTER KEYSLOT of Valkey 9.1 says
        ("", 0),
        ("foo", 12182),
        ("{foo}bar", 12182),
        ("x{foo}{bar}", 12182),
        ("foo{}{bar}", 8363),
        ("foo{{bar}}zap", 4015),
        ("foo{bar", 15278),
    ],
)
def test_a_name_has_the_slot_of_the_specification(name: str, slot: int) -> None:
    assert slot_of(name) == slot


def test_names_that_are_no_text_have_slots() -> None:
    assert 0 <= slot_of(b"c:\xff".decode("utf-8", "surrogateescape")) < SLOTS


def test_a_map_says_who_has_which_slot() -> None:
    found = slot_map(
        [
            [0, 9, [b"10.0.0.1", 7001, b"id", []], [b"10.0.0.2", 7002, b"id", []], [b"?", 7009, b"id", []]],
            [10, 10, [None, 7000, b"id", []]],
            [11, 11, [b"", 7003]],
            [12, 13, [b"?", 7004, b"id", []]],
            [14, 14, [b"node.example", 7005, b"id", [b"ip", b"10.0.0.5"]]],
        ],
        ASKED,
    )
    assert found.owners[:15] == (
        *[Node("10.0.0.1", 7001)] * 10,
        Node("h1", 7000),
        Node("h1", 7003),
        None,
        None,
        Node("node.example", 7005),
    )
    assert set(found.owners[15:]) == {None}
    assert found.replicas == {Node("10.0.0.2", 7002)}
    assert found.primaries == sorted([*{owner for owner in found.owners if owner is not None}])


@pytest.mark.parametrize(
    "said",
    [
        *(None, 7, b"OK", [7], [[]], [[0, 1]], [[0, 1, []]], [[0, 1, None]], {b"0": b"1"}),
        *([[0, SLOTS, [b"h", 1]]], [[-1, 1, [b"h", 1]]], [[2, 1, [b"h", 1]]], [[0, b"x", [b"h", 1]]]),
        *([[0, 1, [b"h", b"x"]]], [[0, 1, [7, 1]]], [[0, 1, [b"\xff", 1]]]),
    ],
)
def test_what_is_no_map_is_an_error(said: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        slot_map(said, ASKED)


@pytest.mark.parametrize(
    ("error", "there"),
    [
        ("MOVED 3999 127.0.0.1:6381", Redirect(Node("127.0.0.1", 6381), asking=False)),
        ("ASK 3999 127.0.0.1:6381", Redirect(Node("127.0.0.1", 6381), asking=True)),
        ("MOVED 3999 :6381", Redirect(Node("h1", 6381), asking=False)),
        ("MOVED 3999 2001:db8::1:6381", Redirect(Node("2001:db8::1", 6381), asking=False)),
        ("ASK 3999 node.example:6381", Redirect(Node("node.example", 6381), asking=True)),
        ("MOVED 3999 ?:6381", None),
        ("MOVED 3999 127.0.0.1:0", None),
        ("MOVED 3999 127.0.0.1:65536", None),
        ("MOVED 3999 127.0.0.1:", None),
        ("MOVED 3999 127.0.0.1:٣", None),
        ("MOVED 3999", None),
        ("CLUSTERDOWN The cluster is down", None),
    ],
)
def test_a_redirection_names_a_node(error: str, there: Redirect | None) -> None:
    assert redirect(error, ASKED) == there


@given(st.text())
def test_no_error_breaks_the_reader_of_redirections(error: str) -> None:
    redirect(error, ASKED)
    redirect(f"MOVED 1 {error}", ASKED)
