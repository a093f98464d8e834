"""The process that reads drops: it ends within its limits, with its publisher, and whatever ends it is a finding."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config.processes import interpreter
from tests.support.drops import HOUSING, write_table
from tests.support.instance import children_of, is_alive
from tests.support.waiting import PATIENCE, until
from tests.warehouse.helpers import NO_LIMITS
from warehouse.drops import reader, reader_main
from warehouse.drops.messages import ReadRequest, ReadResult
from warehouse.drops.reader import read_in_subprocess


@pytest.fixture
def request_(drop: Path, tmp_path: Path) -> ReadRequest:
    return asked(drop, tmp_path / "out")


def asked(drop: Path, out: Path) -> ReadRequest:
    (out / "tables").mkdir(parents=True)
    return ReadRequest(paths=(str(drop),), out=str(out / "tables"), before=None, limits=NO_LIMITS)


def silent(_: str) -> None:
    """Progress that is not observed."""


def failure(read: ReadResult) -> str:
    """What the only finding says, which must be that the reader failed."""
    (found,) = read.findings
    assert (found.rule, found.severity, read.tables) == ("reader-failed", "error", {})
    return found.message


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Puts another program in the reader's place."""

    def replace(text: str) -> None:
        monkeypatch.setattr(reader, "interpreter", lambda _, memory, __: [sys.executable, "-c", text, str(memory)])

    return replace


def test_a_drop_is_read_apart_as_it_would_be_here(request_: ReadRequest) -> None:
    """The same tables, and every step is reported once, in order."""
    steps: list[str] = []
    read = read_in_subprocess(request_, steps.append)
    assert {name: info.rows for name, info in read.tables.items()} == {
        "aliases": 3,
        "housing": 2,
        "locations": 9,
        "population": 4,
    }
    assert not [found for found in read.findings if found.severity == "error"]
    assert steps[0].startswith("reading ")
    assert len(steps) == len(set(steps))


# the first three say nothing about the drop (test_reader_signals.py), the others end no process
_OTHERS = ("HUP", "INT", "TERM", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "WINCH")
_FATAL = sorted(set(signal.Signals) - {getattr(signal, f"SIG{name}") for name in _OTHERS})


@pytest.mark.parametrize("number", [*_FATAL, 35, 50])
def test_whichever_signal_ends_the_reader_is_named(
    program: Callable[[str], None], request_: ReadRequest, number: int
) -> None:
    """Also those that have no name; and nothing of it reaches the publisher."""
    default = "" if number == signal.SIGKILL else f"signal.signal({int(number)}, signal.SIG_DFL); "
    program(f"import os, signal; {default}os.kill(os.getpid(), {int(number)})")
    name = number.name if isinstance(number, signal.Signals) else f"signal {number}"
    assert f"ended by {name}" in failure(read_in_subprocess(request_, silent))


def test_a_reader_that_needs_too_much_memory_is_ended_and_says_so(request_: ReadRequest) -> None:
    """The limit is the system's: what no account of the library's counts, counts as well."""
    found = [one for one in read_in_subprocess(request_, silent, memory=50 << 20).findings if one.severity == "error"]
    assert {one.rule for one in found} == {"reader-failed"}
    assert all("memory" in one.message for one in found), found


def test_a_reader_that_takes_too_long_is_ended_and_says_so(
    program: Callable[[str], None], request_: ReadRequest
) -> None:
    """Also one that went on saying things, or stopped listening to signals."""
    program(
        "import signal, time\nfor number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)\n"
        'while True:\n    print(\'{"step":"x"}\', flush=True); time.sleep(.01)'
    )
    assert "did not end within 0.5 s" in failure(read_in_subprocess(request_, silent, seconds=0.5))


@pytest.mark.parametrize(
    ("says", "finding"),
    [
        ("'x' * 100", "ended by SIGABRT"),
        ("'{' * 100 + chr(10) + '{}' * 100", "an unexpected reply"),
        ("'{\"outcome\": 1}' + chr(10) + '{}'", "an unexpected reply"),
        ("chr(255) * 100 + chr(10) + '{}'", "an unexpected reply"),
        ("'x' * 5000", "an unexpected reply"),
    ],
)
def test_nonsense_from_a_reader_is_a_finding(
    program: Callable[[str], None], request_: ReadRequest, monkeypatch: pytest.MonkeyPatch, says: str, finding: str
) -> None:
    """Half a line before it died, no JSON, another structure, no UTF-8, a line that never ends."""
    monkeypatch.setattr(reader, "_MAX_LINE_BYTES", 1000)
    program(f"import os, sys; sys.stdin.buffer.read(); sys.stdout.write({says}); sys.stdout.flush(); os.abort()")
    assert finding in failure(read_in_subprocess(request_, silent))


def test_what_was_read_last_is_named(program: Callable[[str], None], request_: ReadRequest) -> None:
    """So that a reader of the finding knows which file to look at."""
    program('import os, sys; sys.stdin.read(); print(\'{"step":"reading a.parquet"}\', flush=True); os.abort()')
    assert failure(read_in_subprocess(request_, silent)).endswith(
        "SIGABRT, which a damaged file or a lack of memory can cause; it was reading a.parquet"
    )


def test_a_reader_may_complain_at_length(program: Callable[[str], None], request_: ReadRequest) -> None:
    """More than a pipe holds: neither side waits for the other, and the last line is what the finding says."""
    program("import sys; sys.stderr.write('x\\n' * 500_000); sys.exit('the \\x1b[2Jlast')")
    assert failure(read_in_subprocess(request_, silent, seconds=20)) == "reading the drop failed (the \\u001b[2Jlast)"


def test_what_a_reader_says_commands_no_terminal(program: Callable[[str], None], request_: ReadRequest) -> None:
    """Steps and findings alike, whatever has become of the reader."""
    program(
        "import sys; sys.stdin.read()\n"
        "print(r'''{\"step\": \"a\\u001b[2J\"}''')\n"
        'print(r\'\'\'{"outcome": {"no_drop": "\\u001b]0;x\\u0007", "attribution": ["\\n"]}}\'\'\')'
    )
    steps: list[str] = []
    read = read_in_subprocess(request_, steps.append)
    assert (steps, read.no_drop, read.attribution) == (["a\\u001b[2J"], "\\u001b]0;x\\u0007", ("\\n",))


def test_a_reader_that_has_answered_is_not_waited_for(program: Callable[[str], None], request_: ReadRequest) -> None:
    """What hangs while it ends does not hang its publisher."""
    program("import sys, time; sys.stdin.read(); print('{\"outcome\": {}}', flush=True); time.sleep(300)")
    began = time.monotonic()
    assert read_in_subprocess(request_, silent) == ReadResult()
    assert time.monotonic() - began < PATIENCE


def test_a_reader_that_does_not_listen_is_a_finding(program: Callable[[str], None], drop: Path, tmp_path: Path) -> None:
    """A request larger than a pipe holds, and nobody who takes it."""
    program("import os; os.close(0)")
    request = ReadRequest(paths=(str(drop),) * 5000, out=str(tmp_path), before=None)
    assert "exit code 0" in failure(read_in_subprocess(request, silent))


def test_a_reader_knows_no_secrets(
    program: Callable[[str], None], request_: ReadRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORECAST_KEYS_PEPPER", "secret")
    program("import os, sys; sys.exit(repr(sorted(name for name in os.environ if 'FORECAST' in name)))")
    assert failure(read_in_subprocess(request_, silent)) == "reading the drop failed ([])"


def test_a_progress_display_that_breaks_leaves_no_reader(request_: ReadRequest) -> None:
    def broken(_: str) -> None:
        raise BrokenPipeError

    before = children_of(os.getpid())
    with pytest.raises(BrokenPipeError):
        read_in_subprocess(request_, broken)
    assert children_of(os.getpid()) == before
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer) and thread.is_alive()]


_PUBLISHER = """
import sys
from warehouse.drops.messages import ReadRequest
from warehouse.drops.reader import read_in_subprocess
request = ReadRequest(paths=(sys.argv[1],), out=sys.argv[2], before=None)
read_in_subprocess(request, lambda step: print(step, flush=True))
"""


@pytest.fixture
def publisher(drop: Path, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process whose reader stands still in the middle of a drop."""
    for number in range(200):
        write_table(drop / f"part-{number}.parquet", HOUSING)
    out = tmp_path / "out" / "tables"
    out.mkdir(parents=True)
    with subprocess.Popen(
        [sys.executable, "-c", _PUBLISHER, str(drop), str(out)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (child,) = children_of(process.pid)
        os.kill(child, signal.SIGSTOP)
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_whatever_ends_the_publisher_ends_its_reader(publisher: "subprocess.Popen[bytes]", number: int) -> None:
    """Ctrl-C, a shutdown, the system when memory runs out, a terminal that closes: no reader goes on alone."""
    (child,) = children_of(publisher.pid)
    publisher.send_signal(number)
    until(lambda: not is_alive(child))
    publisher.wait(5)


def test_a_reader_whose_publisher_is_gone_already_does_nothing(tmp_path: Path) -> None:
    """It was killed before the reader could ask to be told."""
    done = subprocess.run(
        interpreter("warehouse.drops.reader_main", 1 << 30, 1),
        input=b"{",
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_the_limits_are_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory, size and number of files, no core dump; never above what the process was given."""
    held: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "getrlimit", lambda what: (0, 100 if what == resource.RLIMIT_NOFILE else -1))
    monkeypatch.setattr(resource, "setrlimit", held.__setitem__)
    reader_main.limit(5 << 20)
    assert held[resource.RLIMIT_DATA] == (5 << 20, -1)
    assert held[resource.RLIMIT_NOFILE] == (100, 100)
    assert held[resource.RLIMIT_CORE] == (0, -1)
    assert held[resource.RLIMIT_FSIZE][0] > 0


def test_a_reader_finds_our_modules_wherever_it_is_started(
    request_: ReadRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no others of their names, in the current folder or on PYTHONPATH: a drop may bring some."""
    for name in ("config", "ctypes", "duckdb", "msgspec", "warehouse"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert read_in_subprocess(request_, silent).tables.keys() >= {"locations", "housing"}
