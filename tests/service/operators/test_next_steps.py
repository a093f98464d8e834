"""Each kind of problem has a runbook that exists and a command that fits the installation."""

import re
from typing import get_args

import pytest

from config.settings import Settings
from service.base.ipc import Endpoints
from service.operators.next_steps import Installation, NextSteps
from service.operators.reasons import InstanceProblem
from service.operators.state import Kind
from tests.support.containerfile import ROOT

SYSTEMD = Installation.found({"INVOCATION_ID": "0a"})
COMPOSE = Installation.found({"STARTED_BY": "compose"})
KUBERNETES = Installation.found({"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
BY_HAND = Installation.found({})
EMBEDDED = Endpoints("unix:///run/forecast/a/keys.sock?db=0", "unix:///run/forecast/a/cache.sock?db=0", b"")
IN_COMPOSE = Endpoints("redis://:secret-word@keys:6379/0", "redis://:secret-word@cache:6379/0", b"")
OWN = Endpoints("rediss://user:secret-word@keys.example.org:6380/0", "redis+cluster://c1:7001,c2:7002", b"")


def steps(installation: Installation, endpoints: Endpoints = EMBEDDED, runbooks: str | None = None) -> NextSteps:
    return NextSteps(Settings(data_dir="/data", runbook_url=runbooks), endpoints, installation)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_each_kind_has_a_runbook_that_the_listener_serves(kind: Kind) -> None:
    found = steps(SYSTEMD).find(InstanceProblem(kind, "A text."))
    page, _, section = found.runbook.removeprefix("docs/operate/").partition("#")
    headings = re.findall(
        r"^## (\w+)", (ROOT / "docs/operate" / page.replace(".html", ".md")).read_text(), re.MULTILINE
    )
    assert section in [heading.lower() for heading in headings]
    assert found.command


def test_another_place_of_the_runbooks_is_linked() -> None:
    found = steps(SYSTEMD, runbooks="https://wiki.example.com/f").find(InstanceProblem("cache", ""))
    assert found.runbook == "https://wiki.example.com/f/alerts-stores.html#forecastcacheaway"


@pytest.mark.parametrize(
    ("installation", "endpoints", "kind", "command"),
    [
        (SYSTEMD, EMBEDDED, "cache", "redis-cli -s /run/forecast/a/cache.sock ping"),
        (SYSTEMD, OWN, "cache", "redis-cli -h c1 -p 7001 ping"),
        (KUBERNETES, OWN, "keys", "redis-cli -h keys.example.org -p 6380 --tls ping"),
        (COMPOSE, IN_COMPOSE, "cache", "docker compose ps -a cache"),
        (COMPOSE, EMBEDDED, "keys", "docker compose exec forecast redis-cli -s /run/forecast/a/keys.sock ping"),
        (SYSTEMD, EMBEDDED, "held", "forecast extracts held"),
        (COMPOSE, IN_COMPOSE, "held", "docker compose exec forecast forecast extracts held"),
        (KUBERNETES, OWN, "held", "kubectl -n forecast exec deploy/forecast -- forecast extracts held"),
        (SYSTEMD, EMBEDDED, "workers", "journalctl -u forecast --since -10min"),
        (COMPOSE, IN_COMPOSE, "workers", "docker compose logs --since 10m forecast"),
        (KUBERNETES, OWN, "workers", "kubectl -n forecast logs deploy/forecast --since=10m"),
        (BY_HAND, EMBEDDED, "workers", None),
        (SYSTEMD, EMBEDDED, "hang", "timeout 5 ls /data/releases"),
    ],
)
def test_the_command_fits_the_installation_and_has_no_password(
    installation: Installation, endpoints: Endpoints, kind: Kind, command: str | None
) -> None:
    assert steps(installation, endpoints).find(InstanceProblem(kind, "")).command == command


def test_no_command_contains_a_password() -> None:
    for endpoints in (IN_COMPOSE, OWN):
        for kind in get_args(Kind):
            assert "secret-word" not in str(steps(COMPOSE, endpoints).find(InstanceProblem(kind, "")))


def test_the_command_is_for_the_store_that_is_not_configured() -> None:
    for store in ("keys", "cache"):
        name = {"keys": "key store", "cache": "shared cache"}[store]
        found = steps(SYSTEMD).find(InstanceProblem("store", f"The {name} evicts what it should not."))
        assert found.command == f"redis-cli -s /run/forecast/a/{store}.sock config get maxmemory-policy"


def test_a_full_disk_of_a_store_leads_to_its_own_runbook() -> None:
    found = steps(SYSTEMD).find(InstanceProblem("store", "The key store: the disk of /data is full."))
    assert (found.runbook.partition("#")[2], found.command) == ("forecastdiskfull", "df -h /data")
