"""A real `forecast serve` on free ports, and what partners and operators see of it."""

import contextlib
import json
import logging
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from service.cli import main
from tests.support import launcher
from tests.support.launcher import Launched
from tests.support.network import HERE, Machine
from tests.support.publishing import reading_here
from tests.support.waiting import until
from warehouse.releases.instances import live_instances
from warehouse.rules.drift_rules import DRIFT_RULES
from warehouse.rules.plausibility_rules import FIGURE_RULES, PLACE_RULES

# How long one answer, one command and one stop may take on a busy machine.
_ANSWER_SECONDS = 30.0
_COMMAND_SECONDS = 120.0
_STOP_SECONDS = 60.0
# A handful of ZIP codes drifts beyond every sensible limit; the limits have tests of their own.
_SMALL = [rule for rule in (*PLACE_RULES, *FIGURE_RULES) if rule.few]
NO_DRIFT_LIMITS = ", ".join(f"{rule.name}=1e9" for rule in (*DRIFT_RULES, *_SMALL) if rule.limit is not None)
# For FORECAST_DRAIN where stopping is not what a test shows: most of a stop is waiting for balancers to look away.
SHORT_DRAIN = 0.4
# Nothing here speaks TLS, and to load the certificates of the world for each request takes longer than the request.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
FORECAST = "/v1/population-housing-forecast"

# On the path of every process of an instance: what that finds installed.
_SHIPPED = Path(__file__).with_name("shipped")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(data: Path, **settings: object) -> dict[str, str]:
    """This process's environment with nothing of ours in it but `settings`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FORECAST_")}
    ours = {f"FORECAST_{name.upper()}": str(value) for name, value in settings.items()}
    base = {
        "FORECAST_DATA_DIR": str(data),
        "FORECAST_LOG_FORMAT": "json",
        "FORECAST_LIMITS": NO_DRIFT_LIMITS,
        "FORECAST_INBOX_SETTLE": "0.5",
    }
    path = os.pathsep.join(filter(None, [str(_SHIPPED), clean.get("PYTHONPATH")]))
    return {**clean, "PYTHONPATH": path, **base, **ours}


def forecast(
    env: Mapping[str, str], *arguments: str, machine: Machine = HERE, to: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Runs one command to its end. `to` takes its standard output; without it, the result has it."""
    if not machine.prefix and launcher.can_launch(env):
        return launcher.run(env, *arguments, timeout=_COMMAND_SECONDS, to=to)
    assert to is None
    command = [*machine.prefix, sys.executable, "-m", "service", *arguments]
    return subprocess.run(command, env=dict(env), capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=False)


def forecast_here(env: Mapping[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The same in this process, for commands that set a scene or tell what came of it: starting takes longer than they.

    What it logs is on standard error, as there; an error that nobody expected is raised. Not while threads of the test
    run, which may read the environment, nor within an event loop, such as a browser's.
    """
    ours: dict[str, str | None] = {name: None for name in os.environ if name.startswith("FORECAST_")}
    given = {name: value for name, value in env.items() if name.startswith("FORECAST_")}
    with mock.patch.object(logging.getLogger(), "handlers", []), reading_here():
        result = CliRunner().invoke(main, arguments, env=ours | given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


def issue_key(env: Mapping[str, str], partner: str = "acme", run: Run = forecast_here) -> str:
    done = run(env, "keys", "issue", "--partner", partner, "--json")
    assert done.returncode == 0, done.stderr
    key: str = json.loads(done.stdout)["key"]
    return key


class Instance:
    """`log` collects what it wrote to standard error, as parsed JSON lines. It is asked from the machine it runs on."""

    def __init__(
        self, env: Mapping[str, str], log: Path, workers: int, machine: Machine = HERE, prefix: Sequence[str] = ()
    ) -> None:
        self.machine = machine
        self.log_file = log
        self._stream = log.open("wb")
        arguments = ["serve", "--port", "0", "--operator-port", "0", "--workers", str(workers)]
        prefix = prefix or machine.prefix
        self.process: Launched | subprocess.Popen[bytes]
        if not prefix and launcher.can_launch(env):
            self.process = launcher.launch(env, *arguments, errors=self._stream)
        else:
            command = [*prefix, sys.executable, "-m", "service", *arguments]
            self.process = subprocess.Popen(command, env=dict(env), stderr=self._stream, start_new_session=True)
        self.partners = self.operators = ""
        until(self._addressed)

    def get(self, path: str, key: str | None, timeout: float = _ANSWER_SECONDS, **params: str) -> httpx.Response:
        headers = {"x-api-key": key} if key else {}
        with self.machine.inside():
            return httpx.get(f"{self.partners}{path}", params=params, headers=headers, timeout=timeout, verify=NO_TLS)

    def zip_code(self, key: str | None, zip_code: str = "36436") -> httpx.Response:
        return self.get(FORECAST, key, zip_code=zip_code)

    def ready(self) -> httpx.Response:
        return self._operators("/health/ready")

    def metric(self, sample: str) -> float:
        """The value of one sample line of /metrics, 0 if it is not there."""
        text = self._operators("/metrics").text
        lines = (line.rpartition(" ") for line in text.splitlines())
        return next((float(value) for name, _, value in lines if name == sample), 0.0)

    def total(self, name: str, **labels: str) -> float:
        """The sum of the samples of a metric that have these labels."""
        text = self._operators("/metrics").text
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return sum(
            sample.value for sample in samples if sample.name == name and labels.items() <= sample.labels.items()
        )

    def worker_pids(self, token: str = "") -> list[int]:
        text = self._operators("/metrics", {"authorization": f"Bearer {token}"} if token else {}).text
        prefix = 'forecast_worker_resident_memory_bytes{pid="'
        return [int(line[len(prefix) :].partition('"')[0]) for line in text.splitlines() if line.startswith(prefix)]

    def log(self) -> list[dict[str, Any]]:
        lines = self.log_file.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def descendants(self, name: str = "") -> list[int]:
        """Every process that this instance started; those of that name alone, if it is given."""
        return [pid for pid in children_of(self.process.pid) if not name or name_of(pid) == name]

    def stop(self, number: int = signal.SIGTERM, seconds: float = _STOP_SECONDS) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(seconds)
        finally:
            self.process.kill()
            self._stream.close()

    def _operators(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        with self.machine.inside():
            return httpx.get(f"{self.operators}{path}", timeout=_ANSWER_SECONDS, verify=NO_TLS, headers=headers)

    def _addressed(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"serve ended: {self.log_file.read_text()}")
        for line in self.log():
            if "partners" in line:
                self.partners, self.operators = line["partners"], line["operators"]
                return True
        return False


@contextlib.contextmanager
def serving(
    env: Mapping[str, str], log: Path, workers: int = 1, machine: Machine = HERE, prefix: Sequence[str] = ()
) -> Iterator[Instance]:
    """`prefix` in place of that of `machine`, where the instance needs one of its own."""
    instance = Instance(env, log, workers, machine, prefix)
    try:
        yield instance
    finally:
        instance.stop()


def until_all_serve(data: Path, release: str) -> None:
    """Waits until every instance on `data` says that it serves `release`; a command waits two seconds at most."""

    def holds() -> bool:
        records = live_instances(data)
        return bool(records) and all(record.serves(release) for record in records)

    until(holds)


def children_of(pid: int, module: str = "") -> list[int]:
    """The processes that `pid` started. With `module`, those that run it: not one that is only about to."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and module.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def name_of(pid: int) -> str:
    """As `ps` shows it; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
