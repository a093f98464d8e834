"""The file of a backup: what is in it, and every way in which one can be wrong."""

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.keys import audit, backup, pepper
from service.keys.audit import AUDIT
from service.keys.backup import BackupError, Dump
from service.keys.errors import ForeignStoreError, KeyStoreError
from service.keys.record import IDENTITY, StoreIdentity, record_name
from tests.support.key_store import PEPPER, HeldKeyStore, dumped, found, imported, parsed


async def test_everything_is_in_it_but_secrets_and_the_pepper(store: HeldKeyStore) -> None:
    presented, key = await store.issue("acme", "batch", None)
    await store.revoke(key.key_id)
    lines = await dumped(store)
    first, *_, last = (json.loads(line) for line in lines)
    assert (first["format"], first["version"], first["pepper"]) == ("forecast-keys", 3, pepper.fingerprint(PEPPER))
    assert (last["keys"], last["lines"]) == (1, 2)
    head = backup.check(lines, PEPPER)
    assert head.identity == await store.identity()
    items = list(backup.read_backup(lines))
    assert [item.key for item in items if isinstance(item, backup.KeyItem)] == [(await found(store, key.key_id)).record]
    trail = [line async for line in audit.oldest_first(store.redis)]
    assert [item.line for item in items if isinstance(item, backup.LineItem)] == trail
    parts = parsed(presented)
    assert key.digest.encode() in b"".join(lines)
    for secret in (parts.secret.encode(), PEPPER):
        assert secret not in b"".join(lines)


async def test_a_key_that_changes_meanwhile_is_written_as_it_became(store: HeldKeyStore) -> None:
    """The trail in the file is never ahead of the records in it."""
    _, key = await store.issue("acme", "", None)
    lines = []
    async for line in Dump(store):
        lines.append(line)
        if len(lines) == 2:  # the record is written
            await store.revoke(key.key_id)
            _, new = await store.issue("acme", "", None)
    backup.check(lines, PEPPER)
    last = {item.key.key_id: item.key for item in backup.read_backup(lines) if isinstance(item, backup.KeyItem)}
    assert last[key.key_id].revoked_at is not None
    assert last[new.key_id] == new.record


async def test_a_damaged_record_is_left_out_and_reported(store: HeldKeyStore) -> None:
    await store.issue("acme", "", None)
    await store.client.set(record_name("0" * 12), "{")
    dump = Dump(store)
    lines = [line async for line in dump]
    backup.check(lines, PEPPER)
    assert (dump.counted[backup.KeyItem], [one.key_id for one in dump.damaged]) == (1, ["0" * 12])


async def test_records_of_the_first_version_get_the_name_of_their_pepper(store: HeldKeyStore) -> None:
    """Ours, unless they were given up before: the reader does not have to guess."""
    _, key = await store.issue("acme", "", None)
    first = msgspec.structs.replace(key, pepper="")
    await store.client.set(record_name(key.key_id), msgspec.json.encode(first))
    (item,) = (item for item in backup.read_backup(await dumped(store)) if isinstance(item, backup.KeyItem))
    assert item.key.pepper == pepper.fingerprint(PEPPER)
    control = await store.identity()
    assert control is not None
    adopted = msgspec.structs.replace(control, adopted_at=key.created_at.replace(year=2999))
    await store.client.set(IDENTITY, msgspec.json.encode(adopted))
    (item,) = (item for item in backup.read_backup(await dumped(store)) if isinstance(item, backup.KeyItem))
    assert StoreIdentity(pepper_fingerprint=store.fingerprint, created_at=key.created_at).voids(item.key)


async def test_where_no_key_was_ever_issued_there_is_nothing_to_export(store: HeldKeyStore) -> None:
    with pytest.raises(KeyStoreError, match="so there are none to export"):
        await dumped(store)
    await store.issue("acme", "", None)
    await store.client.flushall()
    with pytest.raises(ForeignStoreError):
        await dumped(store)


@pytest.fixture
async def good(store: HeldKeyStore) -> list[bytes]:
    for _ in range(3):
        _, key = await store.issue("acme", "", None)
    await store.revoke(key.key_id)
    return await dumped(store)


def refused(lines: list[bytes], secret: bytes = PEPPER) -> str:
    with pytest.raises(BackupError) as caught:
        backup.check(lines, secret)
    assert secret.decode() not in str(caught.value)
    return str(caught.value)


async def test_a_file_of_another_kind_version_or_pepper_is_refused(good: list[bytes]) -> None:
    assert "another pepper" in refused(good, b"another pepper of ours")
    assert "version 4" in refused([good[0].replace(b'"version":3', b'"version":4'), *good[1:]])
    other = [good[0].replace(b"forecast-keys", b"other"), *good[1:]]
    for lines in ([], [b"\n"], [b"PAR1\x00"], [b"{}"], good[1:], other):
        assert "is no backup of a key store" in refused(lines)


async def test_a_file_that_is_cut_off_is_refused(good: list[bytes]) -> None:
    whole = b"".join(good)
    for length in range(len(good[0]), len(whole) - 1, 7):
        refused(whole[:length].splitlines(keepends=True))


async def test_an_edited_file_is_refused(good: list[bytes]) -> None:
    """A revocation taken out, a line left out, doubled, moved, added behind the end: the checksum needs the pepper."""
    text = [line.replace(b'"revoked_at"', b'"ignored_at"') for line in good]
    for lines in (
        text,
        [*good[:2], *good[3:]],
        [*good[:2], good[1], *good[2:]],
        [good[0], good[2], good[1], *good[3:]],
        [*good, good[-1]],
        [*good, b"\n"],
        [*good[:-1], good[-1].replace(b'"keys":3', b'"keys":4')],
        good[:-1],
    ):
        assert "nothing was imported" in refused(lines)


async def test_a_line_from_the_future_does_not_spoil_the_backups_after_it(store: HeldKeyStore) -> None:
    await store.issue("acme", "", None)
    (entry,) = await store.client.execute_command("XRANGE", AUDIT, "-", "+")  # type: ignore[no-untyped-call]
    await store.client.xadd(AUDIT, {b"line": entry[1][b"line"]}, id="99999999999999-0")
    _, later = await store.issue("later", "", None)
    lines = await dumped(store)
    await store.client.flushall()
    for added in (3, 0):
        assert (await imported(store, lines)).lines == added
    assert (await store.find(later.key_id)).key == later
    trail = [line async for line in audit.oldest_first(store.redis)]
    assert [line.at.year >= 5000 for line in trail[:3] if line.at] == [False, True, True]
    assert audit.time_of(trail[-1].id) < datetime.now(UTC) + timedelta(days=1), "time goes on as it was"


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_no_bytes_break_the_reader(lines: list[bytes]) -> None:
    refused(lines)
