"""Failures that a person can do something about: one line, an exit code, no traceback, JSON where it was asked for."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.conftest import Cli
from tests.support.foreign_server import answering

KEY_ID = "0B1zQmX4ktLw"
OF_KEYS = [("keys", "list"), ("keys", "issue", "--partner", "acme"), ("keys", "revoke", KEY_ID)]
OF_KEYS += [("keys", "adopt-store", "--yes"), ("keys", "show", KEY_ID), ("log",)]
OF_KEYS += [("keys", "rotate", KEY_ID, "--overlap", "7d"), ("keys", "extend", KEY_ID, "--expires", "never")]
OF_KEYS += [("keys", "change", KEY_ID, "--no-rate")]
OF_DATA = [("extracts", "list"), ("extracts", "show"), ("extracts", "rollback"), ("extracts", "publish", "{drop}")]
OF_CACHE = [("cache", "warm"), ("cache", "stats"), ("cache", "explain", "zip_code=36436")]
OF_INSTANCES = [("status",), ("cache", "purge", "--yes"), ("requests", "find", "a1"), ("requests", "sample", "1%")]
ALL = [("config",), ("serve",), ("demo",), ("top",), *OF_KEYS, *OF_DATA, *OF_CACHE, *OF_INSTANCES]


def filled(arguments: tuple[str, ...], drop: Path) -> list[str]:
    return [word.format(drop=drop) for word in arguments]


@pytest.mark.parametrize("arguments", ALL, ids=" ".join)
def test_an_unknown_setting_is_one_line(cli: Cli, drop: Path, arguments: tuple[str, ...]) -> None:
    for more in ((), ("--json",)):
        done = cli(*filled(arguments, drop), *more, worker="4")
        assert done.code == 1
        assert "unknown setting FORECAST_WORKER (did you mean FORECAST_WORKERS?)" in done.error()
        assert bool(done.out) is bool(more)
    assert not cli.data.exists()


@pytest.mark.parametrize("arguments", [*OF_KEYS, *OF_DATA, *OF_CACHE, *OF_INSTANCES], ids=" ".join)
def test_a_file_in_place_of_the_data_folder_is_one_line(cli: Cli, drop: Path, arguments: tuple[str, ...]) -> None:
    cli.data.write_text("in the way")
    for more in ((), ("--json",)):
        done = cli(*filled(arguments, drop), *more)
        assert done.code == 1
        assert str(cli.data) in done.error()
        assert bool(done.out) is bool(more)


def test_a_refusal_of_the_system_s_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/current.json")

    monkeypatch.setattr("warehouse.releases.changes.roll_back", full)
    done = cli("extracts", "rollback", "--json")
    assert done.code == 1
    assert done.error() == "/data/current.json: No space left on device"


@pytest.fixture
def other_protocol() -> Iterator[int]:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        yield port


@pytest.mark.parametrize("arguments", OF_KEYS, ids=" ".join)
def test_a_url_that_answers_another_protocol_or_not_at_all_is_named(
    cli: Cli, other_protocol: int, arguments: tuple[str, ...]
) -> None:
    for more in ((), ("--json",)):
        done = cli(*arguments, *more, keys_url=f"redis://u:hunter2@127.0.0.1:{other_protocol}")
        assert done.code == 1
        where = f"FORECAST_KEYS_URL: redis://u:********@127.0.0.1:{other_protocol}"
        assert done.error() == f"{where} answers, but does not speak Redis's protocol"
    done = cli(*arguments, "--json", keys_url=f"unix://{cli.data}/none.sock")
    assert done.code == 1
    assert done.error().startswith("key store: ")


@pytest.mark.parametrize("url", ["localhost:6379", "http://u:hunter2@h", "redis://u:hunter2/@h", "redis://h:port"])
def test_a_malformed_url_is_reported_and_never_repeated(cli: Cli, url: str) -> None:
    done = cli("keys", "list", "--json", keys_url=url)
    assert done.code == 1
    assert done.error().startswith("FORECAST_KEYS_URL: ")
    assert "hunter2" not in done.out + done.err
