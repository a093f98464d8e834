"""Azure Blob Storage on this machine: Azurite, in memory. `.ci/run` says how it is installed."""

import base64
import contextlib
import hashlib
import hmac
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

_PROGRAM = Path(__file__).parents[2] / ".azurite/node_modules/azurite/dist/src/blob/main.js"
_ACCOUNT = "devstoreaccount1"
# Known to everybody, and good nowhere else.
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_VERSION = "2023-11-03"
CREDENTIALS = {"AZURE_STORAGE_ACCOUNT_KEY": _KEY}


@dataclass(frozen=True)
class AzureServer:
    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/{_ACCOUNT}"

    @property
    def options(self) -> dict[str, str]:
        return {"endpoint": self.endpoint, "account_name": _ACCOUNT, "allow_http": "true"}

    def make_bucket(self, name: str) -> str:
        """The URL of a new container."""
        date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        ours = {"x-ms-date": date, "x-ms-version": _VERSION}
        named = "".join(f"{field}:{value}\n" for field, value in sorted(ours.items()))
        text = "PUT" + "\n" * 12 + f"{named}/{_ACCOUNT}/{_ACCOUNT}/{name}\nrestype:container"
        signed = base64.b64encode(hmac.digest(base64.b64decode(_KEY), text.encode(), hashlib.sha256)).decode()
        headers = {**ours, "Authorization": f"SharedKey {_ACCOUNT}:{signed}", "Content-Length": "0"}
        url = f"{self.endpoint}/{name}?restype=container"
        with urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers)):
            return f"az://{name}"


@contextlib.contextmanager
def azurite() -> Iterator[AzureServer]:
    """The test is skipped where Azurite is not installed."""
    if not _PROGRAM.exists():
        pytest.skip("Azurite is not installed")
    options = ["--inMemoryPersistence", "--blobPort", "0", "--disableTelemetry", "--skipApiVersionCheck"]
    process = subprocess.Popen(
        ["node", str(_PROGRAM), *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        said = (re.search(r"successfully listens on http://127\.0\.0\.1:(\d+)", line) for line in process.stdout)
        yield AzureServer(next(int(found[1]) for found in said if found))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
