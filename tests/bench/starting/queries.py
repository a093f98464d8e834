"""A query on each request, no keys, no cache: ROAPI and flAPI, over the same joined table in memory."""

import subprocess
from pathlib import Path

import duckdb

from tests.bench.load import Endpoint
from tests.bench.stage import Stage
from tests.bench.starting.around import BIN, PEERS_FOLDER, Around, filled, needs, replaced, when_up
from tests.support.sentinels import free_port

_FLAPI = BIN / "flapi-server"


lacks_roapi = needs(BIN / "roapi", "make bench-peers")


def lacks_flapi() -> str:
    if not _FLAPI.exists():
        return "make bench-peers"
    tried = subprocess.run([_FLAPI, "--version"], capture_output=True, text=True, check=False)
    return f"it does not start here: {tried.stderr.strip().splitlines()[0]}" if tried.returncode else ""


def roapi(stage: Stage, _: Around) -> Endpoint:
    port = free_port()
    config = filled(stage, "roapi.yml", PORT=port, OTHER_PORT=free_port(), FILE=_joined(stage))
    # its line per request would go to the log
    stage.run("roapi", [str(BIN / "roapi"), "-c", str(config)], env={"RUST_LOG": "error"})
    path = "/api/tables/forecast?columns=location,population,housing&filter[zip_code]=%27"
    return when_up(stage, "roapi", Endpoint(f"http://127.0.0.1:{port}", stage.key, path, "%27"))


def flapi(stage: Stage, _: Around) -> Endpoint:
    """It copies the table of another database into its memory: its Parquet reader would be fetched from elsewhere."""
    port, table = free_port(), stage.folder / "flapi.duckdb"
    duckdb.connect().execute(
        replaced((PEERS_FOLDER / "flapi" / "table.sql").read_text(), JOINED=_joined(stage), FILE=table)
    )
    templates = stage.folder / "flapi"
    templates.mkdir()
    for name in ("forecast.yaml", "forecast.sql"):
        (templates / name).write_text((PEERS_FOLDER / "flapi" / name).read_text())
    config = filled(stage, "flapi/flapi.yaml", TEMPLATES=templates, TABLE=table)
    env = {"FLAPI_NO_TELEMETRY": "1", "DATAZOO_DISABLE_TELEMETRY": "1"}
    stage.run("flapi", [str(_FLAPI), "-c", str(config), "-p", str(port), "--log-level", "error"], env=env)
    return when_up(stage, "flapi", Endpoint(f"http://127.0.0.1:{port}", stage.key, "/forecast?zip_code="))


def _joined(stage: Stage) -> Path:
    """The release as a table of one row per ZIP code."""
    file = stage.folder / "joined.parquet"
    if not file.exists():
        statement = (PEERS_FOLDER / "joined.sql").read_text()
        duckdb.connect().execute(replaced(statement, TABLES=stage.release / "tables", FILE=file))
    return file
