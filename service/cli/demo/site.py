"""The demo: an illustrative drop of the whole country, published and served like any other."""

import errno
import shlex
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec

from config.settings import Settings
from service.base import interruption
from service.base.sockets import StartError
from service.embedded.owner import borrowed
from service.instance.supervisor import serve
from service.keys import form, pepper
from service.keys.store import KeyStore
from service.publishing.publisher import make_origin
from service.publishing.releases import FolderReleases
from service.redis.primary import Primary, open_store
from warehouse.files.atomic import write_atomically
from warehouse.files.remedies import unwritable
from warehouse.publishing.illustrative import make_drops
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.schema.errors import NoReleaseError, WarehouseError

_PORTS_TO_TRY = 50  # from the configured one upwards
_PARTNER = "demo"

Say = Callable[[str], None]


class DemoLines(msgspec.Struct, frozen=True):
    """The lines to copy into another terminal, each as (purpose, line). The demo prints them once it serves."""

    illustrative: bool  # False if another release was already current
    ask: tuple[tuple[str, str], ...]  # requests of a partner
    variables: str  # a line that sets those of the samples in the documentation
    publish: tuple[tuple[str, str], ...]  # commands of a data engineer
    operate: tuple[tuple[str, str], ...]  # a page and commands of an operator
    operators: str  # base URL of the operators' listener
    documentation: str  # URL of the documentation page


def run_demo(
    settings: Settings, *, log_json: bool, say: Say, on_ready: Callable[[DemoLines], None], program: str
) -> None:
    """Prepares drops, release and key unless they exist, then serves until stopped.

    `program` is the command line that stands for `forecast` on this machine.

    Raises:
        StartError, WarehouseError, SettingsError, EmbeddedError: the message says what to do, in one line.
    """
    folder = settings.data_path / "demo"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(unwritable(settings.data_path, error)) from None
    make_drops(folder / "drops", say)
    manifest = _release(settings, folder, say)
    with borrowed(settings, ("keys",)) as urls:
        key = _key(settings, urls["keys"], folder / "key", say)
        test_key = _key(settings, urls["keys"], folder / "test-key", say, test=True)
    settings = msgspec.structs.replace(_with_free_ports(settings, say), docs=True)

    def ready(partners: str, operators: str) -> None:
        variables = f"export BASE={partners} KEY={key} TEST_KEY={test_key}"
        on_ready(_lines(manifest, partners, operators, key, f"{program} ", folder / "drops", variables))

    say("starting")
    serve(settings, log_json=log_json, on_ready=ready)


def _release(settings: Settings, folder: Path, say: Say) -> Manifest:
    """Returns the current release. If there is none, publishes the first demo drop."""
    catalog = Catalog(settings.data_path)
    try:
        return catalog.current()
    except NoReleaseError:
        say("publishing the first drop")
    drop = str(folder / "drops" / "first")
    options = PublishOptions(attribution=settings.attribution, origin=make_origin([drop], "demo"))
    outcome = FolderReleases(settings).publish([drop], options, say)
    if outcome.manifest is None:
        raise WarehouseError(f"the demo's drop was refused: {outcome.report.summary()}; remove {folder} and try again")
    return outcome.manifest


def _key(settings: Settings, url: str, path: Path, say: Say, *, test: bool = False) -> str:
    """Returns a key of the demo: the one in its file if it is active, else a new one."""
    secret = pepper.obtain(settings.keys_pepper, settings.data_path)
    kept = path.read_text(encoding="ascii").strip() if path.exists() else ""

    async def obtain() -> str:
        redis = open_store("key store", Primary(url), timeout=3.0, retries=1)
        try:
            store = KeyStore(redis, secret, settings.data_path)
            parts = form.parse(kept)
            known = (await store.find(parts.key_id)).key if parts else None
            if parts and known and known.status() == "active" and known.digest == form.digest(parts.secret, secret):
                return kept
            say("issuing a test key" if test else "issuing a key")
            issued, _ = await store.issue(_PARTNER, "made by forecast demo", None, test=test)
            return issued
        finally:
            await redis.stop()

    key = interruption.run(obtain())
    if key != kept:
        write_atomically(path, f"{key}\n".encode(), mode=0o600)
    return key


def _with_free_ports(settings: Settings, say: Say) -> Settings:
    partners = _free_port(settings.listen_host, settings.listen_port, set(), say)
    operators = _free_port(settings.operator_host, settings.operator_port, {partners}, say)
    return msgspec.structs.replace(settings, listen_port=partners, operator_port=operators)


def _free_port(host: str, wanted: int, taken: set[int], say: Say) -> int:
    if wanted == 0:
        return 0
    for port in range(wanted, min(wanted + _PORTS_TO_TRY, 65536)):
        if port not in taken and _is_free(host, port):
            if port != wanted:
                say(f"port {wanted} is busy; using {port}")
            return port
    raise StartError(f"no free port from {wanted} upwards; set FORECAST_LISTEN_PORT and FORECAST_OPERATOR_PORT")


def _is_free(host: str, port: int) -> bool:
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except (OSError, TypeError, ValueError) as error:
        # any other problem is reported when the service binds the port
        return not isinstance(error, OSError) or error.errno != errno.EADDRINUSE
    return True


def _lines(
    manifest: Manifest, partners: str, operators: str, key: str, program: str, drops: Path, variables: str
) -> DemoLines:
    url = f"{partners}/v1/population-housing-forecast"
    curl = f"curl -s -H 'x-api-key: {key}'"
    projects = f"{curl} '{partners}/v1/development-projects?city_name=Chicago&state_code=IL'"
    return DemoLines(
        illustrative=manifest.illustrative,
        ask=(
            ("a ZIP code", f"{curl} '{url}?zip_code=36436'"),
            ("a city", f"{curl} '{url}?city_name=Saint+Louis&state_code=MO'"),
            *((("development projects", projects),) if "projects" in manifest.areas else ()),
            ("a helpful error", f"{curl} '{url}?city_name=Dickinson&state_code=AK'"),
        ),
        variables=variables,
        publish=(
            ("publish a newer drop", f"{program}extracts publish {shell_path(drops / 'second')}"),
            ("see a bad drop refused", f"{program}extracts publish {shell_path(drops / 'bad')}"),
            ("roll back", f"{program}extracts rollback"),
        ),
        operate=(
            ("status, in a browser", f"{operators}/"),
            ("status, in a terminal", f"{program}status"),
            ("metrics", f"curl -s {operators}/metrics"),
        ),
        operators=operators,
        documentation=f"{partners}/docs/",
    )


def shell_path(path: Path) -> str:
    """Returns `path`, absolute and quoted for a shell."""
    return shlex.quote(str(path.absolute()))
