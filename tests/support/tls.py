"""A Redis that speaks TLS alone and asks for client certificates, with an authority of the test's own."""

import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from tests.support.sentinels import free_port
from tests.support.valkey import ServerProcess

_START_SECONDS = 10.0


class Authority:
    """Makes certificates in `folder` with the `openssl` command.

    They have the extensions that Python 3.13 and later want, but for those that are named in `without`.
    """

    def __init__(self, folder: Path, without: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._without = without
        self._folder = folder
        self.certificate = folder / "ca.pem"
        self._key = folder / "ca.key"
        settings = folder / "ca.cnf"
        extensions = self._extensions("basicConstraints=critical,CA:TRUE", _KEY_USAGE, _SUBJECT)
        settings.write_text(f"[req]\ndistinguished_name=name\nx509_extensions=ca\n[name]\n[ca]\n{extensions}")
        named = ("-config", settings, "-subj", "/CN=authority")
        self._openssl("req", "-x509", *_NEW_KEY, *named, "-keyout", self._key, "-out", self.certificate)

    def issue(self, name: str) -> tuple[Path, Path]:
        """Certificate and key, for 127.0.0.1."""
        request, certificate, key = (self._folder / f"{name}.{kind}" for kind in ("csr", "pem", "key"))
        extension = self._folder / f"{name}.ext"
        extension.write_text(self._extensions("subjectAltName=IP:127.0.0.1", _SUBJECT, "authorityKeyIdentifier=keyid"))
        self._openssl("req", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        signed_by = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", "-days", "2")
        self._openssl("x509", "-req", "-in", request, "-out", certificate, "-extfile", extension, *signed_by)
        return certificate, key

    def _extensions(self, *lines: str) -> str:
        named = {line.partition("=")[0]: line for line in lines}
        if self._without in named:  # `openssl` adds identifiers that are not declined
            named[self._without] = f"{self._without}=none" if self._without.endswith("Identifier") else ""
        return "\n".join((*named.values(), ""))

    def _openssl(self, *arguments: str | Path) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


_KEY_USAGE = "keyUsage=critical,keyCertSign,cRLSign"
_SUBJECT = "subjectKeyIdentifier=hash"
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")


class TlsServer(ServerProcess):
    """`url` names the authority and a client's certificate; `speaks_tls` is False where the program cannot.

    With `watched`, it is a Sentinel that knows the server on this port as the primary of `keys`. `issuer` makes the
    certificates of several, and `more` are further options.
    """

    def __init__(
        self,
        folder: Path,
        program: str,
        watched: "TlsServer | None" = None,
        issuer: Authority | None = None,
        more: Sequence[str] = (),
    ) -> None:
        authority = issuer or (Authority(folder / "certificates") if watched is None else watched.issuer)
        self.issuer: Authority = authority
        certificate, key = authority.issue("server" if watched is None else "sentinel")
        self.client: tuple[Path, Path] = authority.issue("client") if watched is None else watched.client
        self.authority = authority.certificate
        self.port = free_port()
        options = ["--port", "0", "--tls-port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder)]
        options += ["--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
        options += ["--tls-ca-cert-file", str(self.authority), "--tls-auth-clients", "yes", *more, "--save", ""]
        if watched is not None:
            folder.mkdir(parents=True)
            about = folder / "sentinel.conf"
            about.write_text(f"sentinel monitor keys 127.0.0.1 {watched.port} 1\n")
            options = [str(about), "--sentinel", "--tls-replication", "yes", *options[:-2]]
        self._process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
        self.speaks_tls = self._started()

    @property
    def url(self) -> str:
        certificate, key = self.client
        return self.with_query(ssl_ca_certs=self.authority, ssl_certfile=certificate, ssl_keyfile=key)

    def with_query(self, **query: Path) -> str:
        return f"rediss://127.0.0.1:{self.port}/0?{urlencode({name: str(path) for name, path in query.items()})}"

    def _started(self) -> bool:
        deadline = time.monotonic() + _START_SECONDS
        while self._running.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.01)
            else:
                return True
        return False
