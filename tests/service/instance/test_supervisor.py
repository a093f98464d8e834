"""The supervisor, as far as it can be asked without a running instance."""

import errno
import logging
import socket
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from config.settings import Settings
from service.base import tracing
from service.base.sockets import StartError
from service.instance.supervisor import Supervisor, serve
from warehouse.releases.instances import InstanceFile, InstanceRecord


class FullDisk(InstanceFile):
    """Takes a record only while there is room."""

    full = True

    def write(self, record: InstanceRecord) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(record)


def test_traces_without_their_extra_are_an_error_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(tracing, "version", version)
    with pytest.raises(
        StartError, match=r"FORECAST_TRACES: .* install the extra: population-housing-forecast\[traces\]"
    ):
        serve(Settings(data_dir=str(tmp_path / "data"), traces=0.01), log_json=False)
    assert list(tmp_path.iterdir()) == []


async def test_a_record_that_cannot_be_written_is_logged_once_until_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "forecast.supervisor")
    supervisor = Supervisor(Settings(data_dir=str(tmp_path)), log_json=False)
    disk = FullDisk(tmp_path, "one")
    with socket.create_server(("127.0.0.1", 0)) as bound:
        supervisor._instance, supervisor._operators = disk, bound
        for full in (True, True, False, True):
            disk.full = full
            supervisor._written = None  # as if a worker had another release since
            await supervisor._write_record()
    assert [record.getMessage() for record in caplog.records] == [
        "cannot write the instance record: [Errno 28] No space left on device"
    ] * 2
