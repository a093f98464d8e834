"""nginx: one process with Lua and one without; whoever runs shares them, each with a server of its own."""

import resource
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.bench.load import Endpoint
from tests.bench.stage import Stage
from tests.bench.starting.around import PEERS_FOLDER, Around, filled, program, table_of_keys, when_up
from tests.support.sentinels import free_port

_MODULES = Path("/usr/lib/nginx/modules")
_LUA = ("ndk_http_module.so", "ngx_http_lua_module.so")
_LUA_CORE = Path("/usr/share/lua/5.1/resty/core.lua")
# Open files that it keeps, within the limit: so many, and at least so many; and its connections beside them.
_MOST_FILES, _LEAST_FILES, _MOST_CONNECTIONS = 100_000, 1000, 11_000


def lacks_lua() -> str:
    if program("nginx") and all((_MODULES / name).exists() for name in _LUA) and _LUA_CORE.exists():
        return ""
    return "apt-get install nginx libnginx-mod-http-lua libnginx-mod-http-ndk lua-resty-core"


def lacks_nginx() -> str:
    return "" if program("nginx") else "apt-get install nginx"


class Nginx:
    """The process that runs the servers of a file in `peers`, which name their ports."""

    def __init__(self, servers: str, modules: tuple[str, ...] = ()) -> None:
        self._servers = servers
        self._modules = "\n".join(f"load_module {_MODULES / name};" for name in modules)
        self._ports: dict[str, int] = {}

    def at(self, name: str) -> Callable[[Stage, Around], Endpoint]:
        """What starts it, unless it runs, and names the server that listens on the port of this name."""

        def start(stage: Stage, around: Around) -> Endpoint:
            if not self._ports:
                self._start(stage, around.service)
            return when_up(stage, self._servers, f"http://127.0.0.1:{self._ports[name]}")

        return start

    def _start(self, stage: Stage, service: str) -> None:
        text = (PEERS_FOLDER / self._servers).read_text()
        names = [word.strip("@") for word in text.replace(":", " ").split() if word.endswith("_PORT@")]
        self._ports = {name: free_port() for name in names}
        folder = stage.folder / self._servers.removesuffix(".conf")
        folder.mkdir()
        # the worker gives up root: what it uses has to be open to it
        for opened in (stage.folder, stage.keys.socket.parent):
            opened.chmod(0o755)
        folder.chmod(0o777)
        stage.keys.socket.chmod(0o777)
        shutil.copy(PEERS_FOLDER / "key.lua", folder / "key.lua")
        keys = stage.folder / "nginx_keys.conf"
        keys.write_text("".join(f"{key} 1;\n" for key in table_of_keys(stage)))
        servers = filled(stage, self._servers, FOLDER=folder, REDIS=stage.keys.socket, KEYS=keys, **self._ports)
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        files = min(_MOST_FILES, max(_LEAST_FILES, most - _MOST_CONNECTIONS))
        upstream = service.removeprefix("http://")
        config = filled(
            stage, "nginx.conf", FILES=files, FOLDER=folder, MODULES=self._modules, SERVERS=servers, UPSTREAM=upstream
        ).rename(folder / "nginx.conf")
        command = [program("nginx") or "nginx", "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(config)]
        stage.run(self._servers, command)


with_lua = Nginx("lua_servers.conf", _LUA)
without_lua = Nginx("map_servers.conf")
