"""URLs that list several servers: the Sentinels of a primary, or the nodes of a cluster."""

from typing import Literal, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import msgspec

Kind = Literal["sentinel", "cluster"]

SENTINEL_FORM = "redis+sentinel://user:password@host:26379,host:26379,host:26379/SERVICE/0"
CLUSTER_FORM = "redis+cluster://user:password@host:6379,host:6379"

TLS_OPTIONS = (
    "ssl_ca_certs",
    "ssl_ca_path",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_password",
    "ssl_cert_reqs",
    "ssl_check_hostname",
)

# By scheme: the kind of listed servers, and whether connections are encrypted.
_SCHEMES: dict[str, tuple[Kind, bool]] = {
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
}
_PORTS = {"sentinel": 26379, "cluster": 6379}
_SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")


class Node(NamedTuple):
    """One server: a host name or address (IPv6 without brackets), and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class ServerList(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed URL. `nodes` are in the order of the URL: Sentinels, or nodes of the cluster.

    `credentials`, as in the URL up to the `@`, are for the primary and its replicas, or for each node of the cluster;
    `sentinel_credentials` are for the Sentinels. Either may be empty.
    """

    kind: Kind
    tls: bool
    nodes: tuple[Node, ...]
    service: str = ""  # the Sentinels' name of the primary
    database: int = 0
    credentials: str = ""
    sentinel_credentials: str = ""
    tls_options: tuple[tuple[str, str], ...] = ()

    def server_url(self, node: Node) -> str:
        """Returns the plain URL of a primary, a replica or a node of the cluster: redis:// or rediss://."""
        return self._url(self.credentials, node, self.database)

    def sentinel_url(self, node: Node) -> str:
        """Returns the plain URL of a Sentinel."""
        return self._url(self.sentinel_credentials, node, 0)

    def _url(self, credentials: str, node: Node, database: int) -> str:
        options = f"?{urlencode(self.tls_options)}" if self.tls_options else ""
        return f"{'rediss' if self.tls else 'redis'}://{credentials}{node}/{database}{options}"

    @property
    def address(self) -> str:
        """The URL without credentials; the same for one list in any order."""
        nodes = ",".join(sorted(map(str, self.nodes)))
        path = f"/{quote(self.service, safe='')}/{self.database}" if self.kind == "sentinel" else ""
        return f"{'rediss' if self.tls else 'redis'}+{self.kind}://{nodes}{path}"


class ServerListError(ValueError):
    """A URL is malformed. The message does not repeat it."""


def names_several(url: str) -> bool:
    """Whether the scheme of `url` is for a list of servers."""
    return url.partition("://")[0] in _SCHEMES


def server_list(url: str) -> ServerList | None:
    """Parses `url`; returns None if its scheme is for a single server.

    Raises:
        ServerListError: if `url` is malformed.
    """
    if not names_several(url):
        return None
    scheme, _, rest = url.partition("://")
    kind, tls = _SCHEMES[scheme]
    place, _, query = rest.partition("?")
    authority, _, path = place.partition("/")
    credentials, at, listed = authority.rpartition("@")
    if "@" in path + query or "#" in rest:
        raise ServerListError(_malformed(kind))
    options = _options(scheme, kind, query, tls=tls)
    service, database = _service(path) if kind == "sentinel" else _no_path(path)
    return ServerList(
        kind=kind,
        tls=tls,
        nodes=_nodes(kind, listed),
        service=service,
        database=database,
        credentials=f"{credentials}{at}",
        sentinel_credentials=_credentials(options),
        tls_options=tuple(item for item in options.items() if item[0] in TLS_OPTIONS),
    )


def _nodes(kind: Kind, listed: str) -> tuple[Node, ...]:
    nodes = []
    for one in listed.split(","):
        try:
            parts = urlsplit(f"//{one}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not host or port == 0 or any(character.isspace() for character in one):
            raise ServerListError(_malformed(kind))
        nodes.append(Node(host, port or _PORTS[kind]))
    if len(set(nodes)) < len(nodes):
        raise ServerListError("names a server twice")  # a Sentinel would have two votes
    return tuple(nodes)


def _service(path: str) -> tuple[str, int]:
    service, _, database = path.partition("/")
    if not service:
        raise ServerListError(f"needs the Sentinels' service name after the hosts: {SENTINEL_FORM}")
    if not (database or "0").isdecimal():
        raise ServerListError(_malformed("sentinel"))
    return unquote(service), int(database or "0")


def _no_path(path: str) -> tuple[str, int]:
    if path not in ("", "0"):
        raise ServerListError("names a database or a path: a cluster has only database 0")
    return "", 0


def _options(scheme: str, kind: Kind, query: str, *, tls: bool) -> dict[str, str]:
    allowed = (*(_SENTINEL_OPTIONS if kind == "sentinel" else ()), *(TLS_OPTIONS if tls else ()))
    options = dict(parse_qsl(query, keep_blank_values=True))
    if query and not (options and set(options) <= set(allowed)):
        accepted = f"accepts {', '.join(allowed)}" if allowed else "accepts none"
        raise ServerListError(f"has an unknown option after `?`; {scheme}:// {accepted}")
    return options


def _credentials(options: dict[str, str]) -> str:
    user, password = (options.get(name, "") for name in _SENTINEL_OPTIONS)
    if not (user or password):
        return ""
    return f"{quote(user, safe='')}:{quote(password, safe='')}@"


def _malformed(kind: Kind) -> str:
    form = SENTINEL_FORM if kind == "sentinel" else CLUSTER_FORM
    return (
        f"needs hosts with numeric ports, separated by commas: {form}, with special characters of the password "
        "percent-encoded (/ as %2F, # as %23, ? as %3F, @ as %40, a comma as %2C)"
    )
