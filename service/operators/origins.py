"""Keeps pages of other sites from reaching the operators' listener through a browser."""

import ipaddress
import re
from collections.abc import Iterable
from itertools import product

from service.request.response import Header

# A name or an IPv4 address, or an IPv6 address in brackets, and a port.
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]+)?")
_OURS = (b"same-origin", b"none")  # none: a typed address or a bookmark


class Hosts:
    """The host names that a listener on a loopback address accepts. The operators' listener owns it.

    A site can point its own name to this machine (DNS rebinding), so that its pages could read from the listener. The
    browser then sends that name as Host.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {"localhost", *(name.strip("[]").lower() for name in names)}

    def know(self, headers: list[Header]) -> bool:
        """Whether the request is for one of the names or a loopback address, on any port.

        A request without a Host does not come from a browser, and is accepted.
        """
        return all(self._knows(value.decode("latin-1").lower()) for name, value in headers if name == b"host")

    def _knows(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = (match[1] or match[2]).removesuffix(".")
        if name in self._names:
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False


def is_cross_site(headers: list[Header]) -> bool:
    """Whether a browser reports that a page of another site or port sent the request.

    Browsers send `Sec-Fetch-Site` to addresses that they trust, and `Origin` with each POST to any other.
    """
    sites = _values(headers, b"sec-fetch-site")
    if sites:
        return any(site not in _OURS for site in sites)
    pairs = product(_values(headers, b"origin"), _values(headers, b"host"))
    return any(origin.partition(b"://")[2] != host for origin, host in pairs)


def _values(headers: list[Header], wanted: bytes) -> list[bytes]:
    return [value.lower() for name, value in headers if name == wanted]
