"""Every setting is a field of `Settings`, with its type, bounds and description. `config.loading` finds the values."""

from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from config.urls import EMBEDDED

ENVIRONMENT_PREFIX = "FORECAST_"

_SECRET = {"secret": True}
_URL = {"secret": True, "url": True}
# Characters that an Authorization header can contain.
_TOKEN = Meta(min_length=16, pattern=r"^[!-~]+\Z")
# A host in a URL, without a port.
_HOST = Meta(pattern=r"^([A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+\]?)\Z")

# Without a trailing slash: paths are appended.
_PUBLIC_URL = Meta(pattern=r"^https?://[^\s/?#@]+(/[^\s/?#]+)*\Z")
_CONTACT = Meta(pattern=r"^(https?://\S+|[^\s@:/]+@[^\s@:/]+)\Z")

# The tables of a drop (`warehouse.schema.tables`).
TableName = Literal["locations", "population", "housing", "aliases", "development_projects"]

DEFAULT_ATTRIBUTION = (
    "Population and housing: U.S. Census Bureau",
    "Locations: U.S. Census Bureau Gazetteer; GeoNames (https://www.geonames.org/), CC BY 4.0",
)


class SettingsError(Exception):
    """A setting is unknown, malformed or unreadable. The message names it and says what to do."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one command, or of one instance and its processes. Durations are seconds, sizes are bytes."""

    data_dir: Annotated[
        str,
        Meta(description="Releases, key store, pepper and usage; unset: `.forecast` or `~/.local/share/forecast`."),
    ]
    keys_url: Annotated[
        str,
        Meta(
            description="Redis of the API keys: redis://, rediss:// (TLS) or unix://, redis+sentinel:// or "
            "rediss+sentinel:// with its Sentinels, or `embedded`.",
            extra=_URL,
        ),
    ] = EMBEDDED
    cache_url: Annotated[
        str,
        Meta(
            description="Redis of the shared cache and the rates: like FORECAST_KEYS_URL, or redis+cluster:// or "
            "rediss+cluster:// with two or three nodes of a cluster.",
            extra=_URL,
        ),
    ] = EMBEDDED
    keys_replicas: Annotated[
        int, Meta(ge=0, le=100, description="Replicas that must confirm a key change; too few are an error.")
    ] = 0
    keys_pepper: Annotated[
        str | None,
        Meta(description="Secret for key digests; unset: the file `pepper` of the data folder.", extra=_SECRET),
    ] = None
    releases_url: Annotated[
        str | None,
        Meta(
            description="Store of releases: s3:// or gs:// with bucket and prefix, az:// with container and prefix, or "
            "file:///FOLDER for trials. It needs the extra `releases`. Unset: the data folder alone."
        ),
    ] = None
    releases_options: Annotated[
        dict[str, str],
        Meta(
            description="Options of the store of releases, like `endpoint=https://s3.example.com, region=eu`; also "
            "allow_http, virtual_hosted_style_request, account_name (Azure) and skip_signature, but no credentials."
        ),
    ] = {}
    embedded_allowed: Annotated[
        bool, Meta(description="Whether `embedded` is accepted; the container image sets false.")
    ] = True

    listen_host: Annotated[str, Meta(description="Address of the partners' listener.")] = "127.0.0.1"
    listen_port: Annotated[int, Meta(ge=0, le=65535, description="Port of the partners' listener.")] = 8000
    operator_host: Annotated[str, Meta(description="Address of the operators' listener; keep it private.")] = (
        "127.0.0.1"
    )
    operator_port: Annotated[int, Meta(ge=0, le=65535, description="Port of the operators' listener.")] = 8001
    advertise_url: Annotated[
        Annotated[str, _PUBLIC_URL] | None,
        Meta(
            description="The operators' listener as commands on other machines reach it, like http://10.0.0.7:8001, "
            "without a slash at its end; unset: its own address."
        ),
    ] = None
    runbook_url: Annotated[
        Annotated[str, _PUBLIC_URL] | None,
        Meta(
            description="Folder with the pages of the runbooks that alerts and reasons link, like "
            "https://wiki.example.com/forecast, without a slash at its end; unset: the operators' listener's own."
        ),
    ] = None
    partner_metrics: Annotated[
        bool, Meta(description="Whether metrics name the 50 busiest partners; each adds some series.")
    ] = False
    operator_allowed_hosts: Annotated[
        tuple[Annotated[str, _HOST], ...],
        Meta(
            description="Host names, besides localhost, that an operators' listener on loopback accepts, separated by "
            "commas, like that of a proxy that keeps the Host header."
        ),
    ] = ()
    operator_read_token: Annotated[
        Annotated[str, _TOKEN] | None,
        Meta(
            description="Bearer token for metrics and the reasons of health: 16 ASCII characters or more, no white "
            "space; unset: open on loopback, closed beyond it.",
            extra=_SECRET,
        ),
    ] = None
    operator_write_token: Annotated[
        Annotated[str, _TOKEN] | None,
        Meta(
            description="Bearer token for reading, revoking keys, rolling back, purging and setting the share of "
            "logged requests: 16 ASCII characters or more, no white space, and not the read token; unset: no changes "
            "are possible.",
            extra=_SECRET,
        ),
    ] = None
    operator_keys_token: Annotated[
        Annotated[str, _TOKEN] | None,
        Meta(
            description="Bearer token for keys, plans and partners over HTTP: 16 ASCII characters or more, no white "
            "space, and none of the other tokens; unset: only commands manage keys.",
            extra=_SECRET,
        ),
    ] = None
    handover_url: Annotated[
        Annotated[str, _PUBLIC_URL] | None,
        Meta(
            description="What links that show a key once begin with, like https://keys.example.com, without a slash at "
            "its end: a proxy there leads /handover/ to the operators' listener; unset: the Host of the request."
        ),
    ] = None
    workers: Annotated[
        Annotated[int, Meta(ge=1, le=256)] | None,
        Meta(description="Worker processes; unset: one per usable processor."),
    ] = None

    cache_ttl: Annotated[
        int, Meta(ge=1, le=31_536_000, description="Time to live of an entry in the shared cache.")
    ] = 45 * 86_400  # longer than the time between drops, or all warmed entries expire together before the next one
    cache_timeout: Annotated[
        float, Meta(gt=0, le=5, description="Longest wait for the shared cache before DuckDB answers.")
    ] = 0.05
    near_cache_bytes: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Memory of one worker's near cache; 0: off; unset: 256 MiB, less if memory is small."),
    ] = None
    near_cache_ttl: Annotated[
        float, Meta(gt=0, le=86_400, description="Time to live of an entry in the near cache; it never becomes stale.")
    ] = 300.0
    keys_timeout: Annotated[
        float, Meta(gt=0, le=5, description="Timeout of one attempt at the key store; there are two attempts.")
    ] = 0.1
    lookup_timeout: Annotated[
        float, Meta(gt=0, le=4, description="Deadline of one look-up in the warehouse, waiting included.")
    ] = 2.0
    lookup_queue: Annotated[
        int, Meta(ge=1, le=100_000, description="Look-ups that may wait for DuckDB in one worker; more get a 503.")
    ] = 256
    lookup_memory: Annotated[
        Annotated[int, Meta(ge=33_554_432)] | None,
        Meta(
            description="Memory of DuckDB in one worker, for each release; unset: a share of an eighth of all memory."
        ),
    ] = None
    lookups_in_memory: Annotated[
        bool,
        Meta(description="Whether DuckDB keeps entries in memory; else look-ups read the file, ten times as slow."),
    ] = True

    max_age: Annotated[
        int, Meta(ge=0, le=86_400, description="`max-age` of Cache-Control on answers that clients may keep.")
    ] = 60
    connections: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Connections that one worker serves; requests on more get a 503.")
    ] = 20_000
    keep_alive: Annotated[
        int, Meta(ge=1, le=3600, description="How long an idle connection stays open; keep it above the balancer's.")
    ] = 75
    connection_age: Annotated[
        int,
        Meta(
            ge=0,
            le=86_400,
            description="Age, give or take a tenth, at which a connection closes after an answer, so that a balancer "
            "spreads connections again; 0: never.",
        ),
    ] = 0
    drain: Annotated[
        float, Meta(ge=0, le=300, description="Longest time for requests under way to finish when stopping.")
    ] = 10.0
    previous_release_on_failure: Annotated[
        bool, Meta(description="Whether the previous release answers if the current one fails; such answers say so.")
    ] = False
    public_url: Annotated[
        Annotated[str, _PUBLIC_URL] | None,
        Meta(
            description="The partners' URL of the service, like https://api.example.com, without a slash at its end, "
            "for the OpenAPI description and /docs/; unset: relative to that description."
        ),
    ] = None
    contact: Annotated[
        Annotated[str, _CONTACT] | None,
        Meta(description="Contact for partners, in the OpenAPI description and /docs/: an e-mail address or a URL."),
    ] = None
    docs: Annotated[bool, Meta(description="Whether /docs/ on the partners' listener shows the documentation.")] = False

    log_format: Annotated[
        Literal["auto", "json", "text"], Meta(description="`auto` is text in a terminal and JSON elsewhere.")
    ] = "auto"
    log_level: Annotated[Literal["debug", "info", "warning", "error"], Meta(description="Least severity logged.")] = (
        "info"
    )
    access_log: Annotated[
        Literal["off", "errors", "all"] | Annotated[float, Meta(ge=0, le=1)],
        Meta(description="Requests logged: none, errors and slow ones, also a share of the others like 1%, or all."),
    ] = "errors"
    slow_request: Annotated[
        float, Meta(gt=0, le=60, description="Time after which a request counts as slow, and is logged.")
    ] = 0.5

    traces: Annotated[
        float,
        Meta(ge=0, le=1, description="Share of requests that are traced, like 1%; it needs the extra `traces`."),
    ] = 0.0

    limits: Annotated[
        dict[str, Annotated[float, Meta(ge=0, le=1e9)]],
        Meta(description="Limits of publishing rules, like `total-drift=10%, leaping-figure=8`; 1e9: none."),
    ] = {}
    severities: Annotated[
        dict[str, Literal["error", "warning", "info"]],
        Meta(description="Severities of publishing rules, like `carried-table=error, vanished-figure=warning`."),
    ] = {}
    keep_releases: Annotated[
        int,
        Meta(
            ge=2,
            le=10_000,
            description="Releases, and versions of the figures, that publishing keeps; one in use is never retired.",
        ),
    ] = 10
    warm: Annotated[
        Literal["all", "off"],
        Meta(description="Answers of a new release that are cached before it goes live: all, or none."),
    ] = "all"

    drop_every: Annotated[
        Annotated[float, Meta(ge=1, le=3_153_600_000)] | None,
        Meta(description="Longest time between drops, like `31d`; after it, the next drop is overdue."),
    ] = None

    attribution: Annotated[
        tuple[str, ...],
        Meta(description="Sources of extracts that list none, separated by `|`."),
    ] = DEFAULT_ATTRIBUTION

    inbox: Annotated[
        str | None, Meta(description="Inbox: the folder whose drops are published automatically; unset: none.")
    ] = None
    inbox_marker: Annotated[
        str,
        Meta(
            pattern=r"^(?!\.{1,2}$)[^/\x00]+$",
            description="File that marks a drop in the inbox as complete.",
        ),
    ] = "_SUCCESS"
    inbox_settle: Annotated[
        float, Meta(ge=0, le=86_400, description="Time without changes after which a marked drop is complete.")
    ] = 5.0
    inbox_quiet: Annotated[
        Annotated[float, Meta(gt=0, le=86_400)] | Literal["never"],
        Meta(description="Time without changes after which a drop is complete; `never`: only if it has a marker."),
    ] = 30.0
    inbox_tables: Annotated[
        tuple[TableName, ...],
        Meta(
            description="Tables that a drop in the inbox must have, separated by commas: "
            f"{', '.join(get_args(TableName))}."
        ),
    ] = ()
    inbox_hold: Annotated[
        tuple[str, ...],
        Meta(description="Rules whose findings hold a drop in the inbox until it is approved, separated by commas."),
    ] = ()
    inbox_on_refusal: Annotated[
        str | None,
        Meta(
            description="Command to run, without a shell, when a drop in the inbox is refused or held.", extra=_SECRET
        ),
    ] = None

    @property
    def data_path(self) -> Path:
        return Path(self.data_dir)
