"""What many tests share: a real Valkey, a small published release, a worker that serves it."""

import atexit
import fcntl
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import hypothesis
import msgspec
import pytest
import redis.utils

from config.processes import collect_seldom
from config.settings import Settings
from tests.support import azurite as azure_server
from tests.support import gcs_server
from tests.support.drops import ALIASES, HOUSING, LOCATIONS, POPULATION, location, project, write_drop
from tests.support.in_memory import write_in_memory
from tests.support.publishing import publish
from tests.support.s3_server import CREDENTIALS, S3Server, s3_server
from tests.support.served import Served, served
from tests.support.skipped import MAY_SKIP_NOTHING, fails_for_skipping, line_of_skipped
from tests.support.valkey import ValkeyProcess
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog

collect_seldom()

# DuckDB's binding lists on stderr whatever outlives the interpreter, of which pytest keeps much: sixty lines after the
# result. This is the last that a process of ours does.
atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))

# Each client of the fake Redis would read it from disk.
redis.utils.get_lib_version = cache(redis.utils.get_lib_version)

# A second thread of DuckDB costs more than it saves on a small drop. Processes that are started have theirs.
pytest.MonkeyPatch().setattr("warehouse.drops.disk_budget.processors", lambda: 1)

# Hundreds of processes are started here: whatever this one was told, let them compile our modules once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Only test processes use the allocator of `make test`; what they start does not.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("LD_PRELOAD", None)

# Whoever starts the tests in the background of a script has SIGINT ignored, with nohup also SIGHUP, and every process
# would inherit that.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

# On a busy machine any example may take seconds; Hypothesis would call that a failure.
hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("patient")

# Together large enough for gzip to be worth it.
SPRINGFIELD = tuple(
    location(str(zip_code), "Springfield", "IL", county_name="Sangamon County", county_fips_code="17167")
    for zip_code in range(62701, 62709)
)


_WAITING = {"browser", "conformance", "contract", "faults"}
_PROCESSES = 5  # that tests are run in, as pyproject.toml has it
# Modules that share emulators of stores, each of which takes seconds to start.
_OF_STORES = {"test_inbox_store", "test_objects", "test_other_clouds", "test_store_faults", "test_turned_machine"}


def _shared(module: Path) -> object:
    """What tests of the module share with those of others, else the module."""
    if module.stem in _OF_STORES:
        return "stores"
    return "browser" if "browser" in module.parts else module


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that mostly wait for other processes are begun first, by all test processes but the last.

    Each test process is given an equal part of what is collected, in order, and takes from the end of another's when it
    has done its own. In the order of folders the waiting ones would be left to the end, and the processors idle.
    """
    waiting: list[pytest.Item] = []
    rest: list[pytest.Item] = []
    for item in items:
        (waiting if _WAITING.intersection(item.path.parts) else rest).append(item)
    groups = {group: number for number, group in enumerate(dict.fromkeys(_shared(item.path) for item in waiting))}
    ordered: list[pytest.Item] = []
    taken, begin = 0, _PROCESSES - 1
    for process in range(begin):
        part = [item for item in waiting if groups[_shared(item.path)] % begin == process]
        room = max(0, len(items) // _PROCESSES - len(part))
        ordered += part + rest[taken : taken + room]
        taken += room
    items[:] = ordered + rest[taken:]


_turn = os.open(__file__, os.O_RDONLY)


def pytest_configure() -> None:
    """In a new checkout one test process collects first: all at once would compile what the others compile as well."""
    write_in_memory()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    gc.disable()  # until all tests are collected
    collected = Path(__file__).with_name("warehouse").joinpath("__pycache__").exists()  # the last folder
    if not collected:
        try:
            fcntl.flock(_turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(_turn, fcntl.LOCK_SH)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was imported and collected stays: looking at it again and again would take a tenth of the time."""
    fcntl.flock(_turn, fcntl.LOCK_UN)
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    line = line_of_skipped(skipped)
    if line is not None:
        terminalreporter.write_line(line)
    if fails_for_skipping(len(skipped)):
        terminalreporter.write_line(f"this run may skip nothing ({MAY_SKIP_NOTHING} is set), so it failed")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = 0 if reporter is None else len(reporter.stats.get("skipped", []))
    if fails_for_skipping(skipped) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session", autouse=True)
def _nothing_left(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test process wrote goes with it, at once, unless something failed there."""
    yield
    if not request.session.testsfailed:
        shutil.rmtree(tmp_path_factory.getbasetemp(), ignore_errors=True)


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name."""
    folder = Path(tempfile.mkdtemp(prefix="pf"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """A folder for all tests whose path leaves room for a socket's name."""
    folder = Path(tempfile.mkdtemp(prefix="pf"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def valkey(short_folder: Path) -> Iterator[ValkeyProcess]:
    """A server that no test may stop: tests that hurt one start their own."""
    server = ValkeyProcess(short_folder / "valkey").start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A store of objects for all tests; each makes a bucket. Its credentials are in the environment from then on."""
    with pytest.MonkeyPatch.context() as patched, s3_server() as server:
        for name, value in CREDENTIALS.items():
            patched.setenv(name, value)
        yield server


@pytest.fixture(scope="session")
def gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[gcs_server.GcsServer]:
    with pytest.MonkeyPatch.context() as patched, gcs_server.gcs_server() as server:
        for name, value in gcs_server.credentials(tmp_path_factory.mktemp("account")).items():
            patched.setenv(name, value)
        yield server


@pytest.fixture(scope="session")
def azure() -> Iterator[azure_server.AzureServer]:
    with pytest.MonkeyPatch.context() as patched, azure_server.azurite() as server:
        for name, value in azure_server.CREDENTIALS.items():
            patched.setenv(name, value)
        yield server


@pytest.fixture(scope="session")
def published(short_folder: Path) -> Path:
    """A data folder with a release that no test may replace."""
    drop = write_drop(
        short_folder / "drop",
        locations=(*LOCATIONS, *SPRINGFIELD),
        population=POPULATION,
        housing=HOUSING,
        aliases=ALIASES,
    )
    data = short_folder / "data"
    assert publish(Catalog(data), [str(drop)], PublishOptions(attribution=("The tests",))).result == "published"
    return data


@pytest.fixture(scope="session")
def settings(published: Path, valkey: ValkeyProcess) -> Settings:
    return Settings(data_dir=str(published), keys_url=valkey.url, cache_url=valkey.url, keys_timeout=1, cache_timeout=1)


@pytest.fixture(scope="session")
def worker(settings: Settings) -> Iterator[Served]:
    """The service with its defaults, for reading only; generous budgets, because test machines are busy."""
    with served(settings) as running:
        yield running


@pytest.fixture(scope="session")
def documented(short_folder: Path, settings: Settings) -> Iterator[Served]:
    """The service with its documentation, and with everything that the guide's examples ask for."""
    projects = [
        project(f"sf-{number}", city_name="San Francisco", state_code="CA", zip_code="94103") for number in range(12)
    ]
    drop = write_drop(
        short_folder / "guided",
        locations=(*LOCATIONS, location("94103", "San Francisco", "CA")),
        projects=projects,
    )
    data = short_folder / "guided-data"
    assert publish(Catalog(data), [str(drop)], PublishOptions(attribution=("The tests",))).result == "published"
    with served(msgspec.structs.replace(settings, data_dir=str(data), docs=True)) as running:
        yield running
