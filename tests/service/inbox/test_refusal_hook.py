"""The command that a refused drop runs."""

import sys
from pathlib import Path

import msgspec
import pytest

from service.inbox.drops import Stopped
from service.inbox.status import read_status
from tests.support.inbox import BAD, Site, stop


def python(program: str, *arguments: str) -> str:
    quoted = " ".join(f"'{argument}'" for argument in arguments)
    return f'{sys.executable} -c "{program}" {quoted}'


def test_a_refusal_runs_the_command(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the drop's name and paths in its environment, none of our secrets, and no shell to misread anything."""
    reported = tmp_path / "reported"
    monkeypatch.setenv("FORECAST_KEYS_PEPPER", "hunter2")
    monkeypatch.setenv("FORECAST_INBOX_ON_REFUSAL_FILE", "x")
    program = "import os, sys, json; open(sys.argv[1], 'w').write(json.dumps([sys.argv[2], dict(os.environ)]))"
    site.command = python(program, str(reported), "$HOME; *")
    site.put("bad; rm -rf *")
    site.answers = [BAD]
    site.watcher().once()
    argument, environ = msgspec.json.decode(reported.read_bytes())
    (home,) = (site.inbox / "quarantine").iterdir()
    assert argument == "$HOME; *"
    assert environ["DROP_NAME"] == "bad; rm -rf *"
    assert environ["DROP_RESULT"] == "refused"
    assert environ["DROP_PATH"] == str(home / "bad; rm -rf *")
    assert environ["DROP_REPORT"] == str(home / "report.json")
    assert not {"FORECAST_KEYS_PEPPER", "FORECAST_INBOX_ON_REFUSAL_FILE"} & set(environ)
    assert read_status(site.data).untold is None


def test_a_held_drop_runs_it_too(site: Site, tmp_path: Path) -> None:
    """And the command can tell which it is."""
    reported = tmp_path / "reported"
    program = "import os, sys; open(sys.argv[1], 'w').write(os.environ['DROP_RESULT'] + os.environ['DROP_PATH'])"
    site.command = python(program, str(reported))
    site.hold("2026-10")
    (home,) = (site.inbox / "held").iterdir()
    assert reported.read_text() == f"held{home / '2026-10'}"
    assert read_status(site.data).untold is None


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (python("raise SystemExit(3)"), "it ended with exit code 3"),
        (python("import os; os.kill(os.getpid(), 9)"), "it ended with signal 9"),
        ("/no/such/command --token hunter2", "it cannot be run: No such file or directory"),
    ],
)
def test_a_command_that_fails_harms_nothing(site: Site, command: str, said: str) -> None:
    """It is reported without the command, which may name a token; the next drop is published."""
    site.command = command
    site.put("bad")
    site.answers = [BAD]
    site.watcher().once()
    assert (site.kinds()[-1], said in site.events[-1].message) == ("command_failed", True)
    assert "hunter2" not in site.events[-1].message
    site.put("good")
    assert site.watcher().once()


def test_a_command_has_little_time(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is ended, with what it started."""
    monkeypatch.setattr("service.inbox.report.MAX_HOOK_SECONDS", 0.2)
    site.command = "sh -c 'sleep 600'"
    site.put("bad")
    site.answers = [BAD]
    site.watcher().once()
    assert "did not end within 0.2 s" in site.events[-1].message


def test_a_command_that_did_not_come_to_its_end_is_run_by_the_next_watcher(site: Site, tmp_path: Path) -> None:
    """Nobody misses a refusal because the watcher died just then."""
    reported = tmp_path / "reported"
    site.command = python("import sys; open(sys.argv[1], 'a').write('called')", str(reported))
    site.put("bad")
    site.answers = [BAD]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.inbox.drops.run_command", lambda *_: stop())
        with pytest.raises(Stopped):
            site.watcher().once()
    assert not reported.exists()
    for _ in range(2):
        site.watcher().once()
    assert reported.read_text() == "called"
