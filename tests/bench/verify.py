"""Before a run: whoever is measured gives the service's answers, and refuses a key that nobody was given."""

import random
from collections.abc import Sequence
from typing import Any

import httpx
import msgspec

from tests.bench.contenders import Contender
from tests.bench.stage import BenchError

_SAMPLE = 60


class Likeness(msgspec.Struct, frozen=True):
    """How far a contender does the same. `same_bytes`: its bodies are the service's, byte for byte."""

    same_bytes: bool
    checks_keys: bool


def compared(reference: Contender, contenders: Sequence[Contender], zips: Sequence[str]) -> dict[str, Likeness]:
    """Asks everybody for the same sample of `zips`.

    Raises:
        BenchError: if one answers anything but 200, other figures, or a wrong key.
    """
    sample = random.Random(1).sample(list(zips), _SAMPLE)
    expected = {zip_code: _body(reference, zip_code) for zip_code in sample}
    return {one.name: _likeness(one, expected) for one in contenders}


def warm(contender: Contender, zips: Sequence[str]) -> None:
    """Every one of `zips` once, so that hits are hits. Raises BenchError at an answer that is not 200."""
    with httpx.Client(base_url=contender.endpoint.base, headers={"x-api-key": contender.endpoint.key}) as client:
        for zip_code in zips:
            _checked(contender, client.get(contender.endpoint.target(zip_code)))


def _likeness(contender: Contender, expected: dict[str, bytes]) -> Likeness:
    same = True
    for zip_code, body in expected.items():
        answered = _body(contender, zip_code)
        if answered == body:
            continue
        same = False
        entries = contender.entries(msgspec.json.decode(answered)) if contender.entries else None
        if _without_nulls(entries) != _without_nulls(msgspec.json.decode(body)["zip_codes"]):
            raise BenchError(f"{contender.name} answers {zip_code} with {answered[:200]!r}, not {body[:200]!r}")
    if not contender.keyless:
        _refuses(contender, next(iter(expected)))
    return Likeness(same, not contender.keyless)


def _without_nulls(value: Any) -> Any:
    """ROAPI leaves out members that are null."""
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _body(contender: Contender, zip_code: str) -> bytes:
    endpoint = contender.endpoint
    answer = httpx.get(f"{endpoint.base}{endpoint.target(zip_code)}", headers={"x-api-key": endpoint.key})
    return _checked(contender, answer)


def _checked(contender: Contender, answer: httpx.Response) -> bytes:
    if answer.status_code != 200:
        raise BenchError(f"{contender.name} answers {answer.url} with {answer.status_code}: {answer.text[:200]}")
    return answer.content


def _refuses(contender: Contender, zip_code: str) -> None:
    endpoint = contender.endpoint
    wrong = endpoint.key[:-1] + ("a" if endpoint.key[-1] != "a" else "b")
    for headers in ({}, {"x-api-key": wrong}):
        status = httpx.get(f"{endpoint.base}{endpoint.target(zip_code)}", headers=headers).status_code
        if status not in (401, 422):  # FastAPI calls a missing header unprocessable
            raise BenchError(f"{contender.name} answers {status} where the key is missing or wrong")
