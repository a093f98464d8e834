"""A store of releases that somebody damaged: each message's advice, followed literally, leads back to a good state."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.service.cli.extracts.conftest import Runner
from warehouse.publishing.going_live import GoingLive
from warehouse.releases.instances import InstanceRecord
from warehouse.upstream.documents import POINTER, Beat, blob_name, release_name, sealed
from warehouse.upstream.objects import StoredObject

_OTHER = "20990101T000000Z-0123456789ab"


@pytest.fixture(autouse=True, scope="module")
def _no_waiting() -> Iterator[None]:
    """No instance follows the store."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(GoingLive, "_wait_until_ready", lambda *_: [])
        patched.setattr("service.publishing.releases.StoreReleases.served_within", 0.0)
        yield


def beat(**changes: object) -> bytes:
    """A beat as an instance writes it, with changes in its JSON."""
    record = InstanceRecord("3f9c20d1", 7, "host", "http://127.0.0.1:8001", ("old",))
    known = msgspec.json.decode(msgspec.json.encode(Beat(instance=record, serial=2, ready=())))
    for name, value in changes.items():
        part = known["instance"] if name in known["instance"] else known
        part[name] = value
    return sealed(json.dumps(known).encode())


_FORGED = (
    beat(serial=2**64 - 1),  # serial of 64 bits
    beat(serial=2**100),  # serial of 100 bits
    beat(serial=-1),  # negative serial
    sealed(b'{"serial": ' + b"9" * 5000 + b"}"),  # serial of 5,000 digits
    beat(serial=2**53),  # largest serial
    beat(serial=1000),  # higher serial
    beat(serial=1000, astray=True),  # astray
    beat(serial=1.5),  # float
    sealed(b'{"serial": NaN}'),  # not a number
    beat(pid=2**100),  # pid of 100 bits
    beat(cache="redis://["),  # no address
    beat(ready=["../x", _OTHER, ""]),  # ready with what is not there
    sealed(b'{"x": ' + b"[" * 60_000 + b"]" * 60_000 + b"}"),  # deep
    beat(host="\x1b]0;owned\x07"),  # control characters
    beat(problem="x" * 120_000),  # long
    beat(problem="x" * 3_000_000),  # huge
    sealed(b"[]"),  # array
    "{}".encode("utf-16"),  # utf-16
    sealed(b'{"serial": 1, "serial": 18446744073709551615}'),  # twice
)


def test_forged_beats_stop_no_publish(run: Runner, releases: list[str], drops: list[str]) -> None:
    """Nor do they change what the pointer says."""

    def forge() -> None:
        for number, forged in enumerate(_FORGED):
            run.store.objects.put(f"instances/{number:08x}.json", forged)

    first, second, third = releases
    forge()
    fourth = run("publish", drops[3])
    forge()
    assert run("rollback") == third
    forge()
    run.store.objects.delete(POINTER)
    assert run("rollback", fourth) == fourth
    for number in range(len(_FORGED)):
        run.store.objects.delete(f"instances/{number:08x}.json")
    fifth = run("publish", drops[4])
    pointer = run.store.pointer().pointer
    assert pointer.releases == (fifth, fourth, third, second, first)
    assert pointer.serial < 10_000_000


def test_thousands_of_beats_delay_a_publish_and_keep_what_would_be_retired(
    run: Runner, releases: list[str], drops: list[str], tmp_path: Path
) -> None:
    def forge() -> None:
        for number in range(600):
            run.store.objects.put(f"instances/{number:08x}.json", beat())

    forge()
    newest = run("publish", drops[3])
    assert run.current == newest
    assert len(msgspec.json.encode(run.store.pointer().pointer)) < 2_000
    forge()
    reported = run("retire", releases[0], code=1)
    assert "beats of more than 500 instances" in reported
    assert "Delete objects that no instance wrote below instances/" in reported
    for path in (tmp_path / "bucket" / "instances").iterdir():
        path.unlink()
    assert run("retire", releases[0]) == releases[0]


def _damaged_pointer(content: bytes) -> Callable[[Runner], None]:
    return lambda run: run.store.objects.put(POINTER, content)


def _changed_pointer(**changes: object) -> Callable[[Runner], None]:
    def damage(run: Runner) -> None:
        found = run.store.objects.get(POINTER)
        assert isinstance(found, StoredObject)
        known = json.loads(found.data.splitlines()[0])
        run.store.objects.put(POINTER, sealed(json.dumps(known | changes).encode()))

    return damage


def _only_damaged_named(run: Runner) -> None:
    current = run.current or ""
    _changed_pointer(previous=None, releases=[current])(run)
    run.store.objects.put(release_name(current), b"{")


def _no_blob(run: Runner) -> None:
    (lost, *_) = _own_blobs(run)
    run.store.objects.delete(lost)


def _damaged_blob(run: Runner) -> None:
    (lost, *_) = _own_blobs(run)
    content = b"".join(run.store.objects.stream(lost))
    run.store.objects.put(lost, bytes([content[0] ^ 1]) + content[1:])


def _own_blobs(run: Runner) -> list[str]:
    """Of the tables of the current release alone."""
    pointer = run.store.pointer().pointer
    files = {one: run.store.release(one).files for one in pointer.releases}
    others = {file.digest for one, held in files.items() if one != pointer.release for file in held.values()}
    own = [file.digest for name, file in files[pointer.release or ""].items() if name.startswith("tables/")]
    return [blob_name(digest) for digest in own if digest not in others]


_STATES: dict[str, Callable[[Runner], None]] = {
    "zeroed pointer": _damaged_pointer(b"\0" * 300),
    "pointer with the largest serial": _changed_pointer(serial=2**53),
    "pointer without a current release": _changed_pointer(release=None),
    "pointer to a release that is not there": _changed_pointer(release=_OTHER),
    "pointer that names only a release that is not there": _changed_pointer(
        release=_OTHER, previous=None, releases=[_OTHER]
    ),
    "pointer that names only a damaged release": _only_damaged_named,
    "pointer with thousands of releases": _changed_pointer(releases=[f"20260101T000000Z-{n:x}" for n in range(5000)]),
    "no pointer": lambda run: run.store.objects.delete(POINTER),
    "damaged release": lambda run: run.store.objects.put(release_name(run.current or ""), b"{"),
    "no release": lambda run: run.store.objects.delete(release_name(run.current or "")),
    "damaged previous release": lambda run: run.store.objects.put(
        release_name(run.store.pointer().pointer.previous or ""), b"{"
    ),
    "no blob": _no_blob,
    "damaged blob": _damaged_blob,
}


@pytest.mark.parametrize("damage", _STATES.values(), ids=_STATES)
def test_following_each_advice_literally_leads_out(
    run: Runner, releases: list[str], drops: list[str], damage: Callable[[Runner], None]
) -> None:
    damage(run)
    done: list[str] = []
    command: tuple[str, ...] = ("publish", drops[3])
    while len(done) < 8:
        code, _, reported = run.tried(*command)
        done.append(f"{command}: {code} {reported}")
        if command[0] == "publish" and code == 0:
            break
        advised = re.search(r"`forecast extracts (\w+)", reported) if code else None
        assert advised or code == 0, done
        command = _literally(run, advised[1], drops[3]) if advised else ("publish", drops[3])
    pointer = run.store.pointer().pointer
    assert pointer.release is not None, done
    assert pointer.release not in releases, done
    assert json.loads(run("show", "--json"))["current"] is True
    for file in run.store.release(pointer.release).files.values():
        assert run.store.objects.modified(blob_name(file.digest)) is not None


def _literally(run: Runner, verb: str, drop: str) -> tuple[str, ...]:
    """The command; where it wants a release, the newest that is listed and not current."""
    if verb != "rollback":
        return (verb, drop) if verb == "publish" else (verb,)
    listed = json.loads(run.tried("list", "--json")[1])
    return ("rollback", next(one["id"] for one in listed if not one["current"]))
