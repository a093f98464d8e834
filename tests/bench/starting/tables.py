"""Answers and keys in tables that are filled before the first request: Bun, and libh2o, the ceiling of this kernel."""

from tests.bench.load import Endpoint
from tests.bench.stage import Stage
from tests.bench.starting.around import BIN, PEERS_FOLDER, Around, file_of_answers, needs, table_of_keys, when_up
from tests.support.sentinels import free_port

lacks_bun = needs(BIN / "bun", "make bench-peers, with npm")
lacks_h2o = needs(BIN / "h2o", "make bench-peers, with a C compiler and libh2o-evloop-dev")


def bun(stage: Stage, around: Around) -> Endpoint:
    port = free_port()
    answers, keys = _tables(stage, around)
    env = {"PORT": str(port), "ANSWERS": answers, "KEYS": keys, "NODE_ENV": "production"}
    stage.run("bun", [str(BIN / "bun"), "run", str(PEERS_FOLDER / "bun.js")], env=env)
    return when_up(stage, "bun", f"http://127.0.0.1:{port}")


def h2o(stage: Stage, around: Around) -> Endpoint:
    port = free_port()
    stage.run("h2o", [str(BIN / "h2o"), str(port), *_tables(stage, around)])
    return when_up(stage, "h2o", f"http://127.0.0.1:{port}")


def _tables(stage: Stage, around: Around) -> tuple[str, str]:
    """The files that both read."""
    keys = stage.folder / "keys"
    keys.write_text("\n".join(table_of_keys(stage)) + "\n")
    return str(file_of_answers(stage, around.service)), str(keys)
