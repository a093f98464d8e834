"""Caches that are filled by what is asked: Varnish before the service, FastAPI and Litestar by themselves."""

from tests.bench.load import Endpoint
from tests.bench.stage import Stage
from tests.bench.starting.around import BIN, PEERS_FOLDER, Around, filled, needs, program, when_up
from tests.support.sentinels import free_port

# Nobody else writes a line per request, so neither does Varnish.
_QUIET = ",".join(
    f"-{tag}"
    for tag in (
        *("ReqStart", "ReqMethod", "ReqURL", "ReqProtocol", "ReqHeader", "ReqUnset", "ReqAcct", "Timestamp", "Hit"),
        *("RespProtocol", "RespStatus", "RespReason", "RespHeader", "RespUnset", "VCL_call", "VCL_return"),
    )
)


lacks_python_peers = needs(BIN / "uvicorn", "make bench-peers")


def lacks_varnish() -> str:
    return "" if program("varnishd") else "apt-get install varnish"


def varnish(stage: Stage, around: Around) -> Endpoint:
    port = free_port()
    config = filled(stage, "default.vcl", PORT=around.service.rpartition(":")[2], KEY=stage.key)
    stage.run(
        "varnish",
        [
            *((program("varnishd") or "varnishd"), "-F", "-j", "none", "-n", str(stage.folder / "varnish")),
            *("-a", f"127.0.0.1:{port}", "-f", str(config), "-s", "malloc,1g"),
            *("-p", "timeout_idle=3600", "-p", "thread_pools=1", "-p", f"vsl_mask={_QUIET}"),
        ],
    )
    return when_up(stage, "varnish", f"http://127.0.0.1:{port}")


def fastapi_cache(stage: Stage, around: Around) -> Endpoint:
    return _uvicorn(stage, "with_fastapi", around)


def litestar_cache(stage: Stage, around: Around) -> Endpoint:
    return _uvicorn(stage, "with_litestar", around)


def _uvicorn(stage: Stage, module: str, around: Around) -> Endpoint:
    port = free_port()
    command = [str(BIN / "python"), "-m", "uvicorn", f"{module}:app", "--port", str(port), "--no-access-log"]
    env = {"RELEASE": str(stage.release), "KEYS": stage.keys.url, "CACHE": around.cache.url}
    name = f"{module}-{port}"
    stage.run(name, [*command, "--log-level", "error", "--timeout-keep-alive", "3600"], env=env, cwd=PEERS_FOLDER)
    return when_up(stage, name, f"http://127.0.0.1:{port}")
