"""How each peer is started, and what has to be installed for it."""

import os
import shutil
from pathlib import Path

import duckdb
import msgspec

from tests.bench.load import Endpoint
from tests.bench.stage import FORECAST, Stage, free_port
from tests.support.valkey import ValkeyProcess

HERE = Path(__file__).parent / "peers"
BIN = Path(__file__).parent.parent.parent / ".bench" / "bin"
_LUA_MODULE = Path("/usr/lib/nginx/modules/ngx_http_lua_module.so")
_LUA_CORE = Path("/usr/share/lua/5.1/resty/core.lua")


def lacks_nginx() -> str:
    if shutil.which("nginx", path=_PATH) and _LUA_MODULE.exists() and _LUA_CORE.exists():
        return ""
    return "apt-get install nginx libnginx-mod-http-lua libnginx-mod-http-ndk lua-resty-core"


def lacks_varnish() -> str:
    return "" if shutil.which("varnishd", path=_PATH) else "apt-get install varnish"


def lacks_python_peers() -> str:
    return "" if (BIN / "uvicorn").exists() else "make bench-peers"


def lacks_roapi() -> str:
    return "" if (BIN / "roapi").exists() else "make bench-peers"


_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


class Around(msgspec.Struct, frozen=True):
    """What a peer is given: the address of the service, to stand in front of, and a Redis to keep answers in."""

    service: str
    cache: ValkeyProcess


class Nginx:
    """One nginx for all: `kept` believes a key for 5 s, `packaged` as well, `asked` looks it up on every request."""

    def __init__(self) -> None:
        self._ports: dict[str, int] = {}

    def kept(self, stage: Stage, around: Around) -> Endpoint:
        return self._endpoint(stage, around.service, "NEAR_PORT")

    def packaged(self, stage: Stage, around: Around) -> Endpoint:
        return self._endpoint(stage, around.service, "PACKAGED_PORT")

    def asked(self, stage: Stage, around: Around) -> Endpoint:
        return self._endpoint(stage, around.service, "EACH_PORT")

    def _endpoint(self, stage: Stage, service: str, port: str) -> Endpoint:
        if not self._ports:
            self._ports = {name: free_port() for name in ("NEAR_PORT", "PACKAGED_PORT", "EACH_PORT")}
            self._start(stage, service)
        base = f"http://127.0.0.1:{self._ports[port]}"
        stage.wait_for("nginx", f"{base}{FORECAST}?zip_code=36436", stage.key)
        return Endpoint(base, stage.key)

    def _start(self, stage: Stage, service: str) -> None:
        folder = stage.folder / "nginx"
        folder.mkdir(mode=0o777)
        # the worker gives up root: what it uses has to be open to it
        for opened in (stage.folder, stage.keys.socket.parent):
            opened.chmod(0o755)
        folder.chmod(0o777)
        stage.keys.socket.chmod(0o777)
        config = _filled(
            stage,
            "nginx.conf",
            FOLDER=folder,
            PEERS=_readable_copy(folder),
            REDIS=stage.keys.socket,
            UPSTREAM=service.removeprefix("http://"),
            **self._ports,
        )
        program = shutil.which("nginx", path=_PATH) or "nginx"
        stage.run("nginx", [program, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(config)])


def _readable_copy(folder: Path) -> Path:
    """nginx's worker may not be allowed to read a checkout."""
    shutil.copy(HERE / "key.lua", folder / "key.lua")
    return folder


# Nobody else writes a line per request, so neither does Varnish.
_QUIET = ",".join(
    f"-{tag}"
    for tag in (
        *("ReqStart", "ReqMethod", "ReqURL", "ReqProtocol", "ReqHeader", "ReqUnset", "ReqAcct", "Timestamp", "Hit"),
        *("RespProtocol", "RespStatus", "RespReason", "RespHeader", "RespUnset", "VCL_call", "VCL_return"),
    )
)


def varnish(stage: Stage, around: Around) -> Endpoint:
    port = free_port()
    config = _filled(stage, "default.vcl", PORT=around.service.rpartition(":")[2], KEY=stage.key)
    program = shutil.which("varnishd", path=_PATH) or "varnishd"
    stage.run(
        "varnish",
        [
            *(program, "-F", "-j", "none", "-n", str(stage.folder / "varnish")),
            *("-a", f"127.0.0.1:{port}", "-f", str(config), "-s", "malloc,1g"),
            *("-p", "timeout_idle=3600", "-p", "thread_pools=1", "-p", f"vsl_mask={_QUIET}"),
        ],
    )
    return _when_up(stage, "varnish", f"http://127.0.0.1:{port}")


def fastapi_cache(stage: Stage, around: Around) -> Endpoint:
    return _uvicorn(stage, "with_fastapi", around)


def litestar_cache(stage: Stage, around: Around) -> Endpoint:
    return _uvicorn(stage, "with_litestar", around)


def roapi(stage: Stage, _: Around) -> Endpoint:
    """No keys, no cache: a query on each request."""
    table, port = stage.folder / "roapi.parquet", free_port()
    statement = (HERE / "roapi.sql").read_text()
    duckdb.connect().execute(_replaced(statement, TABLES=stage.release / "tables", FILE=table))
    config = _filled(stage, "roapi.yml", PORT=port, OTHER_PORT=free_port(), FILE=table)
    # its line per request would go to the log
    stage.run("roapi", [str(BIN / "roapi"), "-c", str(config)], env={"RUST_LOG": "error"})
    path = "/api/tables/forecast?columns=location,population,housing&filter[zip_code]=%27"
    endpoint = Endpoint(f"http://127.0.0.1:{port}", stage.key, path, "%27")
    stage.wait_for("roapi", f"{endpoint.base}{endpoint.target('36436')}", stage.key)
    return endpoint


def _uvicorn(stage: Stage, module: str, around: Around) -> Endpoint:
    port = free_port()
    command = [str(BIN / "python"), "-m", "uvicorn", f"{module}:app", "--port", str(port), "--no-access-log"]
    env = {"RELEASE": str(stage.release), "KEYS": stage.keys.url, "CACHE": around.cache.url}
    name = f"{module}-{port}"
    stage.run(name, [*command, "--log-level", "error", "--timeout-keep-alive", "3600"], env=env, cwd=HERE)
    return _when_up(stage, name, f"http://127.0.0.1:{port}")


def _when_up(stage: Stage, name: str, base: str) -> Endpoint:
    endpoint = Endpoint(base, stage.key)
    stage.wait_for(name, f"{base}{endpoint.target('36436')}", stage.key)
    return endpoint


def _filled(stage: Stage, name: str, **values: object) -> Path:
    file = stage.folder / name
    file.write_text(_replaced((HERE / name).read_text(), **values))
    return file


def _replaced(text: str, **values: object) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text
