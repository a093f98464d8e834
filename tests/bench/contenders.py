"""Who is measured: this project's tiers and its peers, as data. And which of them are held against each other."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec
import redis

from tests.bench.load import Endpoint
from tests.bench.stage import Stage
from tests.bench.starting import caches, nginx, queries, tables
from tests.bench.starting.around import Around
from tests.support.valkey import ValkeyProcess

# `hit`: 1,000 ZIP codes that were asked for before. `miss`: ZIP codes that were not, each of them once.
Group = Literal["hit", "miss"]


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """A tier of this project. `near`: bytes of its near cache, which make it the one that answers; 0 is none.

    `limits`: whether the key has a rate and a quota, which are checked on every request.
    """

    name: str
    group: Group
    near: int
    limits: bool = True


TIERS = (
    Tier(name="near", group="hit", near=256 << 20),
    Tier(name="near, key without limits", group="hit", near=256 << 20, limits=False),
    Tier(name="Redis", group="hit", near=0),
    # a near cache that is there, and too small to find anything in
    Tier(name="DuckDB", group="miss", near=1 << 20),
)


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """`lacks` says how to install what is missing, empty if nothing is.

    `entries` finds the entries in an answer that is not, byte for byte, the service's. `keyless`: checks no key, which
    is in its favour. `note`: what else to know.
    """

    name: str
    group: Group
    start: Callable[[Stage, Around], Endpoint]
    lacks: Callable[[], str]
    entries: Callable[[Any], Any] | None = None
    keyless: bool = False
    note: str = ""


def _with_population(answer: Any) -> list[Any]:
    """Entries of flAPI, whose lists of objects repeat the first one: figures come as lists of numbers."""
    return [
        {
            "location": one["location"],
            "population": [
                {"year": year, "tot_population": figure}
                for year, figure in zip(one["years"], one["figures"], strict=True)
            ],
            "housing": one["housing"],
        }
        for one in answer
    ]


PEERS = (
    Peer(
        name="nginx with Lua",
        group="hit",
        start=nginx.with_lua.at("KEPT_PORT"),
        lacks=nginx.lacks_lua,
        note="keys kept 5 s, as they are, not as digests; no rates, no usage; open files cached, no sendfile",
    ),
    Peer(
        name="nginx with Lua, as packaged",
        group="hit",
        start=nginx.with_lua.at("PACKAGED_PORT"),
        lacks=nginx.lacks_lua,
        note="the same with sendfile and without cached open files, as Debian's own configuration has it",
    ),
    Peer(
        name="nginx with Lua, keys in Redis",
        group="hit",
        start=nginx.with_lua.at("ASKED_PORT"),
        lacks=nginx.lacks_lua,
        note="keys kept as they are, not as digests; no rates, no usage",
    ),
    Peer(
        name="nginx without Lua",
        group="hit",
        start=nginx.without_lua.at("MAP_PORT"),
        lacks=nginx.lacks_nginx,
        note="no Lua; keys are a part of its configuration, kept as they are; no rates, no usage",
    ),
    Peer(
        name="Bun, two Maps",
        group="hit",
        start=tables.bun,
        lacks=tables.lacks_bun,
        note="keys and whole answers filled before; the headers kept too, the request's id echoed; no rates, no usage",
    ),
    Peer(
        name="libh2o",
        group="hit",
        start=tables.h2o,
        lacks=tables.lacks_h2o,
        note="the ceiling: C; keys and whole answers filled before, the request's id echoed; no rates, no usage",
    ),
    Peer(
        name="Varnish",
        group="hit",
        start=caches.varnish,
        lacks=caches.lacks_varnish,
        note="one key, a constant of its configuration; no rates, no usage",
    ),
    Peer(name="FastAPI + fastapi-cache2", group="hit", start=caches.fastapi_cache, lacks=caches.lacks_python_peers),
    Peer(name="Litestar's response cache", group="hit", start=caches.litestar_cache, lacks=caches.lacks_python_peers),
    Peer(
        name="ROAPI",
        group="miss",
        start=queries.roapi,
        lacks=queries.lacks_roapi,
        entries=lambda answer: answer,
        keyless=True,
        note="no key; entries without the envelope and what is null; table in memory, joined beforehand",
    ),
    Peer(
        name="flAPI",
        group="miss",
        start=queries.flapi,
        lacks=queries.lacks_flapi,
        entries=_with_population,
        keyless=True,
        note="no key; entries without the envelope, years beside figures; table in memory, joined beforehand, with an "
        "index; each answer waits 40 ms for the last one's acknowledgement: its core idles with 32 connections",
    ),
    Peer(name="FastAPI + DuckDB", group="miss", start=caches.fastapi_cache, lacks=caches.lacks_python_peers),
)


# Whose rate is 1 in the chart.
BASES: dict[str, str] = {"hit": "nginx with Lua", "miss": "ROAPI"}


class Pair(msgspec.Struct, frozen=True):
    """A ratio that is shown: `ours` (a tier) over `peer`. `floor`: what it has to be, unique headers and same bytes."""

    ours: str
    peer: str
    floor: tuple[float, float] | None = None


PAIRS = (
    Pair("near", "nginx with Lua", (1.1, 1.2)),
    Pair("near", "nginx with Lua, as packaged", (1.1, 1.2)),
    Pair("near", "nginx without Lua", (1.0, 1.0)),
    Pair("near", "Bun, two Maps"),
    Pair("near", "libh2o"),
    Pair("near", "Varnish"),
    Pair("near", "FastAPI + fastapi-cache2", (25, 25)),
    Pair("near", "Litestar's response cache"),
    Pair("near, key without limits", "near"),
    Pair("Redis", "nginx with Lua, keys in Redis", (1.0, 1.0)),
    Pair("Redis", "nginx with Lua"),
    Pair("Redis", "FastAPI + fastapi-cache2"),
    Pair("Redis", "Litestar's response cache"),
    Pair("DuckDB", "ROAPI", (2, 2)),
    Pair("DuckDB", "flAPI", (4, 4)),
    Pair("DuckDB", "FastAPI + DuckDB"),
)


class Contender(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who runs. `forget` empties what a look-up could be found in."""

    name: str
    group: Group
    endpoint: Endpoint
    ours: bool = False
    entries: Callable[[Any], Any] | None = None
    keyless: bool = False
    forget: Callable[[], None] = lambda: None


def start_tiers(stage: Stage, tiers: Sequence[Tier] = TIERS) -> list[Contender]:
    """An instance for each tier, which share keys and data."""
    started = []
    for tier in tiers:
        cache, forget = _cache_for(stage, tier.name, tier.group)
        instance = stage.serve(
            tier.name,
            settings={"near_cache_bytes": tier.near, "cache_url": cache.url, "keep_alive": 3600, "connections": 12_000},
        )
        endpoint = Endpoint(instance.partners, stage.key if tier.limits else stage.issue())
        started.append(Contender(name=tier.name, group=tier.group, endpoint=endpoint, ours=True, forget=forget))
    return started


def start_peers(stage: Stage, service: str, peers: Sequence[Peer] = PEERS) -> tuple[list[Contender], dict[str, str]]:
    """Those that are installed, with `service` behind them; and those that are not, with how to install them."""
    started: list[Contender] = []
    missing: dict[str, str] = {}
    for peer in peers:
        if lacks := peer.lacks():
            missing[peer.name] = lacks
            continue
        cache, forget = _cache_for(stage, peer.name, peer.group)
        started.append(
            Contender(
                name=peer.name,
                group=peer.group,
                endpoint=peer.start(stage, Around(service, cache)),
                entries=peer.entries,
                keyless=peer.keyless,
                forget=forget,
            )
        )
    return started, missing


def _cache_for(stage: Stage, name: str, group: Group) -> tuple[ValkeyProcess, Callable[[], None]]:
    """The cache to use, and what empties it: who answers misses has one of its own."""
    if group == "hit":
        return stage.cache, lambda: None
    cache = stage.valkey(name.partition(" ")[0])

    def empty() -> None:
        with redis.Redis(unix_socket_path=str(cache.socket)) as client:
            client.flushall()

    return cache, empty
