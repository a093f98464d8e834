"""A stub of Google Cloud Storage on this machine: as much of its XML API as our library uses, as documented there.

Versions are generations, which never come again; ETags are digests of contents. Requests must be signed.
"""

import base64
import contextlib
import hashlib
import itertools
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_USER = "tests@example.iam.gserviceaccount.com"
# A page of a listing.
_LISTED = 1000


class _Blob(NamedTuple):
    data: bytes
    generation: int
    modified: datetime

    @property
    def fields(self) -> dict[str, str]:
        etag = f'"{hashlib.md5(self.data).hexdigest()}"'  # as the API has it
        return {
            "ETag": etag,
            "x-goog-generation": str(self.generation),
            "Last-Modified": format_datetime(self.modified, usegmt=True),
        }


class _Stub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one write
    buckets: ClassVar[dict[str, dict[str, _Blob]]]
    generations: ClassVar[Iterator[int]]
    changing: ClassVar[threading.Lock]

    def do_GET(self) -> None:
        found = self._found()
        if found is None:
            return
        name, blobs = found
        if not name:
            self._list(blobs)
            return
        blob = blobs.get(name)
        if blob is None:
            self._refuse(404, "NoSuchKey")
        elif self.headers.get("if-none-match") == blob.fields["ETag"]:
            self._answer(304, b"", blob.fields)
        else:
            self._answer(200, blob.data, blob.fields)

    do_HEAD = do_GET  # noqa: N815 - as the base class has it

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["content-length"]))
        found = self._found()
        if found is None:
            return
        name, blobs = found
        wanted = self.headers.get("x-goog-if-generation-match")
        with self.changing:
            before = blobs[name].generation if name in blobs else 0
            if wanted is not None and int(wanted) != before:
                self._refuse(412, "PreconditionFailed")
                return
            blobs[name] = _Blob(data, next(self.generations), datetime.now(UTC))
        self._answer(200, b"", blobs[name].fields)

    def do_DELETE(self) -> None:
        found = self._found()
        if found is not None and found[1].pop(found[0], None) is None:
            self._refuse(404, "NoSuchKey")
        elif found is not None:
            self._answer(204, b"", {})

    def _found(self) -> tuple[str, dict[str, _Blob]] | None:
        """The name that is asked for, and what its bucket has; None if that was refused."""
        bucket, _, name = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or _issuer(token) != _USER:
            self._refuse(401, "AuthenticationRequired")
        elif bucket not in self.buckets:
            self._refuse(404, "NoSuchBucket")
        else:
            return name, self.buckets[bucket]
        return None

    def _list(self, blobs: dict[str, _Blob]) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        after = asked.get("continuation-token", "")
        names = sorted(name for name in list(blobs) if name.startswith(asked.get("prefix", "")) and name > after)
        page = names[:_LISTED]
        more = len(names) > len(page)
        entries = "".join(_entry(name, blobs[name]) for name in page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        said = f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{entries}"
        self._answer(200, f"<ListBucketResult>{said}</ListBucketResult>".encode(), {"Content-Type": "application/xml"})

    def _refuse(self, status: int, code: str) -> None:
        said = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>no</Message></Error>"
        self._answer(status, said.encode(), {"Content-Type": "application/xml"})

    def _answer(self, status: int, body: bytes, fields: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        if status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def _entry(name: str, blob: _Blob) -> str:
    said = {
        "Key": escape(name),
        "ETag": escape(blob.fields["ETag"]),
        "Size": str(len(blob.data)),
        "LastModified": blob.modified.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    return f"<Contents>{''.join(f'<{one}>{value}</{one}>' for one, value in said.items())}</Contents>"


def _issuer(token: str) -> str | None:
    """Of a token that its user made, as service accounts do."""
    _, _, rest = token.partition(".")
    claims = rest.partition(".")[0]
    with contextlib.suppress(ValueError):
        return str(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["iss"])
    return None


@dataclass(frozen=True)
class GcsServer:
    port: int
    buckets: dict[str, dict[str, _Blob]]

    @property
    def options(self) -> dict[str, str]:
        return {"endpoint": f"http://127.0.0.1:{self.port}", "allow_http": "true"}

    def make_bucket(self, name: str) -> str:
        """The URL of a new bucket."""
        self.buckets[name] = {}
        return f"gs://{name}"


@contextlib.contextmanager
def gcs_server() -> Iterator[GcsServer]:
    made = {"buckets": {}, "generations": itertools.count(1), "changing": threading.Lock()}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Stub", (_Stub,), made))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield GcsServer(server.server_port, server.RequestHandlerClass.buckets)  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def credentials(folder: Path) -> dict[str, str]:
    """Those of a service account, for the environment."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()
    account = {"type": "service_account", "client_email": _USER, "private_key": text, "private_key_id": "1"}
    file = folder / "service-account.json"
    file.write_text(json.dumps(account))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(file)}
