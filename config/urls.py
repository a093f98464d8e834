"""URLs of Redis and of the store of releases: validation, masking, comparison. No password is ever shown."""

import ipaddress
import re
from urllib.parse import parse_qsl, unquote, urlsplit

from config.server_lists import TLS_OPTIONS, ServerListError, names_several, server_list

EMBEDDED = "embedded"
HIDDEN = "********"

# The reason, and what to do instead.
NOT_ON_A_CLUSTER = (
    "a key change and its line in the audit trail are written in one step, but a cluster stores them on different "
    "nodes; use one server with replicas (redis+sentinel:// lists its Sentinels)"
)

_PORT = 6379
_SCHEMES = ("redis", "rediss", "unix")
# The client passes on any other option as an argument: some do not exist, others undo our budgets.
_OPTIONS = ("db", "username", "password")


def url_problem(url: str) -> str | None:
    """Returns the problem with `url`, in words that do not repeat it; None if it is valid."""
    if names_several(url):
        return _list_problem(url)
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        return (
            f"must be redis://, rediss:// or unix://, or `{EMBEDDED}`; redis+sentinel:// lists Sentinels, and "
            "redis+cluster:// a cluster, for the cache only"
        )
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    allowed = (*_OPTIONS, *TLS_OPTIONS) if scheme == "rediss" else _OPTIONS
    if host is not None or scheme == "unix":
        names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
        if "@" not in parts.query and not set(names) <= set(allowed):
            return f"has an unknown option after `?`; {scheme}:// accepts {', '.join(allowed)}"
    if scheme == "unix":
        # the client would ignore a host, and use another path
        return None if parts.path.startswith("/") and host is None else "needs an absolute path: unix:///run/redis.sock"
    if host is None or "@" in parts.path + parts.query or parts.fragment:
        return (
            "needs a host and a numeric port: redis://user:password@host:6379/0, with special characters of the "
            "password percent-encoded (/ as %2F, # as %23, ? as %3F, @ as %40)"
        )
    return None


def keys_problem(url: str) -> str | None:
    """Returns why keys cannot be stored at a valid `url`; None if they can."""
    listed = server_list(url)
    return f"names a cluster: {NOT_ON_A_CLUSTER}" if listed is not None and listed.kind == "cluster" else None


def _list_problem(url: str) -> str | None:
    try:
        server_list(url)
    except ServerListError as error:
        return str(error)
    return None


def address(url: str) -> str:
    """Returns a valid `url` without credentials, and without options except the database; equal for equal stores."""
    if url == EMBEDDED:
        return url
    listed = server_list(url)
    if listed is not None:
        return listed.address
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    if parts.scheme == "unix":
        return f"unix://{unquote(parts.path)}?db={options.get('db', '0')}"
    host = parts.hostname or "localhost"
    database = options.get("db") or parts.path.strip("/") or "0"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{parts.port or _PORT}/{database}"


def same_store(one: str, host: str, other: str, other_host: str) -> bool:
    """Whether two addresses, seen from two hosts, are (most likely) the same database."""
    try:
        return not _places(one, host).isdisjoint(_places(other, other_host))
    except ValueError:  # an instance may record any text as the address of its cache
        return one == other


def _places(address: str, host: str) -> set[tuple[str, ...]]:
    """Returns the servers of `address`. Lists with a common server are for the same primary or cluster."""
    listed = server_list(address) if address != EMBEDDED else None
    if listed is None:
        return {_place(address, host)}
    of = (listed.kind, listed.service, str(listed.database))
    return {(*of, *_place(f"redis://{node}", host)) for node in listed.nodes}


def _place(address: str, host: str) -> tuple[str, ...]:
    if address == EMBEDDED:
        return (address,)  # the data folder's own
    parts = urlsplit(address)
    if parts.scheme == "unix":
        return host, parts.path, parts.query
    name = parts.hostname or ""
    # redis:// and rediss:// can be the same server
    return (host if is_loopback(name) else "", "" if is_loopback(name) else name, str(parts.port), parts.path)


def is_loopback(host: str) -> bool:
    """Returns whether a host name or an address means the machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def mask_url(url: str) -> str:
    """Returns `url` without its password and its query, which may contain one too; a malformed one is hidden."""
    if url == EMBEDDED:
        return url
    if url_problem(url) is not None:
        return HIDDEN
    address, query, _ = url.partition("?")
    scheme, _, rest = address.partition("://")
    credentials, at, place = rest.rpartition("@")
    user, colon, _ = credentials.partition(":")
    shown = f"{user}:{HIDDEN}" if colon else user
    return f"{scheme}://{shown}{at}{place}{f'?{HIDDEN}' if query else ''}"


# Options in `FORECAST_RELEASES_OPTIONS`. Credentials come from the environment, as for each cloud's own tools.
OPTIONS = ("account_name", "allow_http", "endpoint", "region", "skip_signature", "virtual_hosted_style_request")
_BUCKETS = ("s3", "gs", "az")
_OPTION_VALUE = re.compile(r"[\w.:/@%~+\[\]-]*", re.ASCII)


def releases_url_problem(url: str) -> str | None:
    """Returns the problem with `url`, in words that do not repeat it; None if it is valid."""
    needed = "must be s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"
    try:
        parts = urlsplit(url)
        has_port = parts.port is not None
    except ValueError:
        return needed
    if parts.scheme not in (*_BUCKETS, "file"):
        return needed
    if "@" in parts.netloc or has_port or parts.query or parts.fragment:
        return f"{needed}, without credentials, port or options; set options in FORECAST_RELEASES_OPTIONS"
    if parts.scheme == "file":
        return None if not parts.netloc and parts.path.strip("/") else "needs an absolute path: file:///releases"
    return None if parts.netloc else needed


def option_problem(options: "dict[str, str]") -> str | None:
    """Returns the problem with the options of a URL; None if they are valid."""
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        return f"unknown option {', '.join(unknown)}; the options are {', '.join(OPTIONS)}"
    for name, value in options.items():
        if not _OPTION_VALUE.fullmatch(value):  # obstore would panic
            return f"the value of {name} cannot be part of a URL; separate options by commas"
    endpoint = options.get("endpoint", "https://")
    plain = options.get("allow_http", "false").lower() in ("true", "1", "yes")
    if not endpoint.startswith(("https://", "http://")):
        return "endpoint must be a URL, like https://s3.example.com"
    if endpoint.startswith("http://") and not plain:
        return (
            "endpoint is http://, where others can read keys and releases in transit; set allow_http=true to allow this"
        )
    return None
