"""The documented lines name curl. Where a machine has none, this runs them: it knows the options that they use.

An option that it does not know is an error, so a documented line cannot pass without being run.
"""

import argparse
import http.client
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

_SECONDS = 60.0
_HTTP_ERROR = 22  # curl's exit status with --fail


def curl() -> list[str]:
    """The command to run in place of `curl`: the real one, if this machine has it."""
    found = shutil.which("curl")
    return [sys.executable, str(Path(__file__))] if found is None else [found]


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    parts = urlsplit(options.url)
    assert parts.scheme == "http", options.url
    headers = dict(field.split(": ", 1) for field in options.header)
    if options.range is not None:
        headers["Range"] = f"bytes={options.range}"
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)
    connection.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if options.fail and response.status >= 400:
        sys.stderr.write(f"curl: (22) The requested URL returned error: {response.status}\n")
        return _HTTP_ERROR
    fields = "".join(f"{name}: {value}\r\n" for name, value in response.getheaders())
    head = f"HTTP/1.1 {response.status} {response.reason}\r\n{fields}\r\n".encode()
    if options.dump_header is not None:
        _write(options.dump_header, head)
    _write(options.output, (head if options.include else b"") + body)
    _write("-", options.write_out.replace("%{http_code}", str(response.status)).replace("\\n", "\n").encode())
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="curl", allow_abbrev=False)
    parser.add_argument("url")
    for flag in ("silent", "show-error", "fail", "include"):
        parser.add_argument(f"-{flag[0]}" if flag != "show-error" else "-S", f"--{flag}", action="store_true")
    parser.add_argument("-H", "--header", action="append", default=[])
    parser.add_argument("-w", "--write-out", default="")
    parser.add_argument("-o", "--output", default="-")
    parser.add_argument("-D", "--dump-header")
    parser.add_argument("-r", "--range")
    return parser.parse_args(arguments)


def _write(place: str, content: bytes) -> None:
    if place == "-":
        sys.stdout.buffer.write(content)
    else:
        Path(place).write_bytes(content)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
