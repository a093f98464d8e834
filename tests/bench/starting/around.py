"""What every peer is given: the service behind it, keys, answers of the service, its filled-in configuration."""

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
import msgspec

from tests.bench.load import Endpoint
from tests.bench.stage import HOT_ZIP_CODES, Stage
from tests.support.valkey import ValkeyProcess

PEERS_FOLDER = Path(__file__).parent.parent / "peers"
BIN = Path(__file__).parent.parent.parent.parent / ".bench" / "bin"
# The ZIP code that shows whether somebody answers.
PROBE = "36436"
# So many keys does a table have, of which one is used.
_TABLE_KEYS = 1000
# Of one answer alone, or of how it went over the wire.
_NOT_KEPT = ("connection", "content-length", "date", "keep-alive", "server", "transfer-encoding", "x-request-id")


class Around(msgspec.Struct, frozen=True):
    """What a peer is given: the address of the service, to stand in front of, and a Redis to keep answers in."""

    service: str
    cache: ValkeyProcess


def program(name: str) -> str | None:
    """Where it is, also where only root looks."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def needs(file: Path, install: str) -> Callable[[], str]:
    """Says how to install what has `file`, empty if it is there."""
    return lambda: "" if file.exists() else install


def when_up(stage: Stage, name: str, at: str | Endpoint) -> Endpoint:
    endpoint = Endpoint(at, stage.key) if isinstance(at, str) else at
    stage.wait_for(name, f"{endpoint.base}{endpoint.target(PROBE)}", stage.key)
    return endpoint


def filled(stage: Stage, name: str, **values: object) -> Path:
    """A copy of a peer's file in which each @NAME@ is replaced."""
    file = stage.folder / Path(name).name
    file.write_text(replaced((PEERS_FOLDER / name).read_text(), **values))
    return file


def replaced(text: str, **values: object) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def table_of_keys(stage: Stage) -> list[str]:
    """The key that is used, among others of its form."""
    return [f"phf_live_{secrets.token_hex(20)}" for _ in range(_TABLE_KEYS - 1)] + [stage.key]


def file_of_answers(stage: Stage, service: str) -> Path:
    """The service's answers for the hot ZIP codes and the probe, as peers/bun.js and peers/h2o.c read them."""
    file = stage.folder / "answers"
    if file.exists():
        return file
    endpoint = Endpoint(service, stage.key)
    records = []
    with httpx.Client(base_url=service, headers={"x-api-key": stage.key, "accept-encoding": "identity"}) as client:
        for zip_code in [*stage.zip_codes()[:HOT_ZIP_CODES], PROBE]:
            answer = client.get(endpoint.target(zip_code))
            headers = [f"{name}: {value}" for name, value in answer.headers.items() if name not in _NOT_KEPT]
            records.append("\n".join([endpoint.target(zip_code), *headers, "", answer.text]))
    file.write_text("\n".join(records) + "\n")
    return file
