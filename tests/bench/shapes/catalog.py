"""The shapes of traffic, as data."""

from typing import Literal

import msgspec

from tests.bench.contenders import PEERS, Peer
from tests.bench.starting import nginx

# `hot`: the ZIP codes that other comparisons ask for. `all`: every one of the release. `cities`: the largest ones.
# `three`: the three largest. `unknown`: ZIP codes that do not exist. `cold`: those that were never asked for, each
# once, in random order. `mixed`: what partners send, one with another (requests.py).
Asked = Literal["hot", "all", "cities", "three", "unknown", "cold", "mixed"]
# `limits`: one with a rate and a quota that are never reached. `none`: one without limits. `over`: one over its rate.
# `wrong`: many that were never issued. A number: so many with a rate and a quota, in turn.
Keys = Literal["limits", "none", "over", "wrong"] | int

KEPT = "nginx with Lua"
_MAP = "nginx without Lua"
# What the key `over` may ask for in a second, and at once; nginx has it in peers/lua_servers.conf.
OVER_RATE = 50

_GZIP = Peer(
    name="nginx with Lua, gzip",
    group="hit",
    start=nginx.with_lua.at("GZIP_PORT"),
    lacks=nginx.lacks_lua,
    note="the service's compressed answers are kept beside the plain ones",
)
_LIMITED = Peer(
    name="nginx with Lua, limit_req",
    group="hit",
    start=nginx.with_lua.at("LIMITED_PORT"),
    lacks=nginx.lacks_lua,
    note="nginx's own rate for each key; it refuses before Lua looks at the key",
)
_USED = (KEPT, _MAP, "ROAPI", "flAPI")
SHAPE_PEERS = (*(peer for peer in PEERS if peer.name in _USED), _GZIP, _LIMITED)


class Floor(msgspec.Struct, frozen=True):
    """What this service has to reach: its rate over the peer's at least, its p99 over the peer's at most."""

    rate: float
    p99: float | None = None


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is for the command line, `what` for readers. `ours` is a tier, `peer` who is beside it.

    `unique`: with headers that differ on each request. `matching`: with the answer's own tag in If-None-Match.
    `encoding`: every answer has to come in it. `strays`: so many answers a second, and once
    more at the start, may have another status than `status`; None: each has the one that the service gives it.
    `least_seconds`: a sample takes that at least.
    """

    name: str
    what: str
    floor: Floor | None = None
    ours: str = "near"
    peer: str = KEPT
    asked: Asked = "hot"
    keys: Keys = "limits"
    connections: int = 32
    unique: bool = True
    headers: tuple[str, ...] = ()
    after: str = ""
    version: str = "1.1"
    matching: bool = False
    encoding: str = ""
    status: int | None = 200
    strays: int = 0
    least_seconds: int = 1


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """So many connections are opened at once while the worker is saturated, and looked at for so long."""

    name: str
    what: str
    connections: int
    seconds: int


_MANY = Floor(0.9, 2)
_CLOSING = Floor(0.8, 1.5)
_OTHERS = Floor(1.0, 1.5)
_REFUSED = Floor(0.6, 2)
_ACCEPTED = ("accept-encoding: gzip",)
_LONG = 5  # seconds that it takes 10,000 connections to be opened and then to be served for a while

SHAPES = (
    Shape(name="unique", what="kept alive, headers that differ", floor=Floor(1.2, 1.5)),
    Shape(name="same", what="kept alive, the same bytes", unique=False, floor=Floor(1.3, 1.5)),
    Shape(name="map", what="kept alive, headers that differ", peer=_MAP, floor=Floor(1.0)),
    Shape(name="accepted", what="gzip accepted, small answers", peer=_GZIP.name, headers=_ACCEPTED, floor=_OTHERS),
    Shape(
        name="gzip",
        what="gzip, largest cities",
        peer=_GZIP.name,
        asked="cities",
        headers=_ACCEPTED,
        encoding="gzip",
        floor=_OTHERS,
    ),
    Shape(name="parameters", what="another parameter beside", after="&utm_source=portal", floor=_OTHERS),
    Shape(name="all", what="all ZIP codes", asked="all", floor=_OTHERS),
    Shape(name="cities", what="largest cities", asked="cities", floor=_OTHERS),
    Shape(name="large", what="the three largest cities, without gzip", asked="three", floor=_OTHERS),
    Shape(
        name="mixed",
        what="mixed traffic of 200 keys",
        peer=_GZIP.name,
        asked="mixed",
        keys=200,
        connections=64,
        status=None,
        floor=Floor(0.8, 3),
    ),
    Shape(name="1000", what="1,000 connections", connections=1000, least_seconds=2, floor=_MANY),
    Shape(
        name="1000-unlimited",
        what="1,000 connections, no limits",
        connections=1000,
        keys="none",
        least_seconds=2,
        floor=_MANY,
    ),
    Shape(name="10000", what="10,000 connections", connections=10_000, least_seconds=_LONG, floor=_MANY),
    Shape(
        name="10000-unlimited",
        what="10,000 connections, no limits",
        connections=10_000,
        keys="none",
        least_seconds=_LONG,
        floor=_MANY,
    ),
    Shape(name="close", what="Connection: close on each", headers=("connection: close",), floor=_CLOSING),
    Shape(name="http10", what="HTTP/1.0, a connection each", version="1.0", floor=_CLOSING),
    Shape(name="304", what="If-None-Match that matches: 304", matching=True, status=304, floor=_OTHERS),
    Shape(name="404", what="ZIP codes that do not exist: 404", asked="unknown", status=404, floor=_OTHERS),
    Shape(
        name="429",
        what="a key over its rate: 429",
        peer=_LIMITED.name,
        keys="over",
        status=429,
        strays=2 * OVER_RATE,
        floor=_REFUSED,
    ),
    Shape(name="401", what="wrong keys: 401", keys="wrong", status=401, floor=_REFUSED),
    Shape(name="200-keys", what="200 keys with rates in turn", keys=200, floor=Floor(0.6, 3)),
    Shape(name="1000-keys", what="1,000 keys with rates in turn", keys=1000, floor=Floor(0.6, 3)),
    Shape(
        name="cold", what="cold ZIP codes, random order", ours="DuckDB", peer="ROAPI", asked="cold", floor=Floor(4.0)
    ),
    Shape(
        name="cold-flapi",
        what="the same, 128 connections",
        ours="DuckDB",
        peer="flAPI",
        asked="cold",
        connections=128,  # with fewer it waits most of the time
        floor=Floor(4.0),
    ),
)

CROWDS = (
    Crowd(name="crowd-1000", what="1,000 opened at once", connections=1000, seconds=3),
    Crowd(name="crowd-10000", what="10,000 opened at once", connections=10_000, seconds=8),
)
NAMES = tuple(one.name for one in (*SHAPES, *CROWDS))
