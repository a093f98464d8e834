"""URLs of Redis: what is wrong with one, and how to show one. Neither ever shows a password."""

from urllib.parse import parse_qsl, urlsplit

EMBEDDED = "embedded"
HIDDEN = "********"

_SCHEMES = ("redis", "rediss", "unix")
# The client would take any other for an argument of its own: some are none, others undo our budgets.
_OPTIONS = ("db", "username", "password")
_TLS_OPTIONS = (
    "ssl_ca_certs",
    "ssl_ca_path",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_password",
    "ssl_cert_reqs",
    "ssl_check_hostname",
)


def url_problem(url: str) -> str | None:
    """What is wrong with `url`, in words that do not repeat it; None if it can be tried."""
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        return f"must be redis://, rediss:// or unix://, or `{EMBEDDED}`"
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    allowed = (*_OPTIONS, *_TLS_OPTIONS) if scheme == "rediss" else _OPTIONS
    if host is not None or scheme == "unix":
        names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
        if "@" not in parts.query and not set(names) <= set(allowed):
            return f"has an unknown option behind `?`; with {scheme}:// there are: {', '.join(allowed)}"
    if scheme == "unix":
        # a second host-like part would be dropped by the client, and another path tried
        return None if parts.path.startswith("/") and host is None else "needs an absolute path: unix:///run/redis.sock"
    if host is None or "@" in parts.path + parts.query or parts.fragment:
        return (
            "needs a host and a numeric port: redis://user:password@host:6379/0, with special characters of the "
            "password percent-encoded (/ as %2F, # as %23, ? as %3F, @ as %40)"
        )
    return None


def mask_url(url: str) -> str:
    """`url` without its password and without its query, which can carry one too; all hidden if it is malformed."""
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
