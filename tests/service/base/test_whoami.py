"""Who runs a command."""

import os
import socket

import pytest

from service.base.whoami import INSTANCE, caller, inbox, way_of, whoami


def test_it_is_the_person_behind_sudo_at_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "grace")
    assert whoami() == f"grace@{socket.gethostname()} (uid {os.getuid()})"


def test_without_sudo_it_is_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_USER", raising=False)
    monkeypatch.setenv("LOGNAME", "ada")
    assert whoami() == f"ada@{socket.gethostname()} (uid {os.getuid()})"


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 10001")

    monkeypatch.delenv("SUDO_USER", raising=False)
    monkeypatch.setattr("getpass.getuser", nobody)
    monkeypatch.setattr("os.getuid", lambda: 10001)
    assert whoami() == f"10001@{socket.gethostname()} (uid {os.getuid()})"


def test_a_name_cannot_speak_to_the_terminal_that_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "\x1b[2J\nroot" + "x" * 1000)
    assert whoami().startswith("\\u001b[2J\\nrootx")
    assert whoami().endswith(f" (uid {os.getuid()})"), "the number is never cut off"
    assert len(whoami()) <= 200


def test_the_name_of_an_actor_has_its_way() -> None:
    names = (whoami(), inbox(), caller("10.0.0.7"), f"{INSTANCE} (seen revoked)", "forecast@host (uid 998)")
    assert [way_of(name) for name in names] == ["command", "inbox", "http", "instance", "command"]
