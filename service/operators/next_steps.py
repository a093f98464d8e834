"""The next step for each kind of problem: its runbook, and a command to begin with that fits this installation."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from config.server_lists import server_list
from config.settings import Settings
from service.base.ipc import Endpoints
from service.operators.overview import NextStep
from service.operators.reasons import InstanceProblem
from service.operators.state import Kind

# The runbooks of the documentation that this listener serves, relative to its root.
OWN_RUNBOOKS = "docs/operate"
# By kind of problem: the alert whose runbook helps, and the command. `log`, `log-errors` and `STORE: WORDS`, which are
# for redis-cli, depend on the installation; {data} is the data folder.
_STEPS: dict[Kind, tuple[str, str]] = {
    "stopping": ("ForecastNotReady", "log"),
    "starting": ("ForecastNotReady", "log"),
    "unpublished": ("ForecastNotReady", "forecast extracts list"),
    "release": ("ForecastReleaseBroken", "forecast extracts list"),
    "hang": ("ForecastWorkersHang", "timeout 5 ls {data}/releases"),
    "silent": ("ForecastWorkersHang", "log"),
    "connections": ("ForecastConnectionsFull", "forecast status"),
    "workers": ("ForecastWorkersMissing", "log"),
    "restarts": ("ForecastWorkersRestarted", "log"),
    "errors": ("ForecastErrors", "log-errors"),
    "keys": ("ForecastKeyStoreAway", "keys: ping"),
    "cache": ("ForecastCacheAway", "cache: ping"),
    "cache-refuses": ("ForecastCacheRefuses", "forecast cache stats"),
    "store": ("ForecastStoreMisconfigured", "keys: config get maxmemory-policy"),
    "foreign-keys": ("ForecastKeyStoreForeign", "forecast keys list"),
    "went-back": ("ForecastKeyStoreWentBack", "forecast log --since 1d"),
    "push": ("ForecastPushLost", "keys: client list type pubsub"),
    "usage": ("ForecastUsageStuck", "log"),
    "clock": ("ForecastClock", "date -u"),
    "mirror": ("ForecastReleasesAstray", "log"),
    "inbox": ("ForecastInboxFailing", "df -h {data}"),
    "held": ("ForecastInboxHeld", "forecast extracts held"),
    "overdue": ("ForecastDropOverdue", "forecast extracts list"),
}
_PAGES = {
    "alerts-stores.html": ("Key", "Cache", "Store", "Push", "Usage"),
    "alerts-releases.html": ("Release", "Drop", "Inbox"),
}


class Installation(msgspec.Struct, frozen=True):
    """How operators reach this instance's machine: the words before a command, and the command that shows the log."""

    before: str
    log: str  # of the last ten minutes; empty if no service manager keeps it
    in_compose: bool = False

    @classmethod
    def found(cls, environ: Mapping[str, str]) -> "Installation":
        if "KUBERNETES_SERVICE_HOST" in environ:
            logs = "kubectl -n forecast logs deploy/forecast --since=10m"
            return cls("kubectl -n forecast exec deploy/forecast -- ", logs)
        if environ.get("STARTED_BY") == "compose":  # compose.yaml sets it
            return cls("docker compose exec forecast ", "docker compose logs --since 10m forecast", in_compose=True)
        return cls("", "journalctl -u forecast --since -10min" if "INVOCATION_ID" in environ else "")


class NextSteps:
    """Finds the next step for a problem of one instance, whose view owns it."""

    def __init__(self, settings: Settings, endpoints: Endpoints, installation: Installation) -> None:
        self._base = settings.runbook_url or OWN_RUNBOOKS
        self._urls = {"keys": endpoints.keys_url, "cache": endpoints.cache_url}
        self._data = str(settings.data_path.absolute())
        self._installation = installation

    def find(self, problem: InstanceProblem) -> NextStep:
        alert, command = _STEPS[problem.kind]
        if problem.kind == "store" and "disk" in problem.text:
            alert, command = "ForecastDiskFull", "df -h {data}"
        elif problem.kind == "store" and "shared cache" in problem.text:
            command = command.replace("keys:", "cache:")
        return NextStep(f"{self._base}/{runbook_page(alert)}", self._command(command))

    def _command(self, command: str) -> str | None:
        installation = self._installation
        if command == "log":
            return installation.log or None
        if command == "log-errors":
            return f"{installation.log} | grep '\"status\":5'" if installation.log else None
        store, colon, words = command.partition(": ")
        if colon:
            return self._redis_command(store, words)
        return installation.before + command.format(data=self._data)

    def _redis_command(self, store: str, words: str) -> str:
        """Returns a command for a Redis. It never contains a password."""
        url = self._urls[store]
        listed = server_list(url)
        parts = urlsplit(url if listed is None else f"redis://{listed.nodes[0]}")
        if parts.scheme == "unix":
            return f"{self._installation.before}redis-cli -s {parts.path} {words}"
        if self._installation.in_compose and parts.hostname == store:
            if words == "ping":
                return f"docker compose ps -a {store}"
            return f"docker compose exec {store} sh -c 'REDISCLI_AUTH=$(cat /passwords/{store}) valkey-cli {words}'"
        tls = " --tls" if parts.scheme == "rediss" else ""
        return f"redis-cli -h {parts.hostname or 'localhost'} -p {parts.port or 6379}{tls} {words}"


def runbook_page(alert: str) -> str:
    """Returns the page and section of an alert's runbook, relative to the folder of the runbooks."""
    subject = alert.removeprefix("Forecast")
    page = next((page for page, starts in _PAGES.items() if subject.startswith(starts)), "alerts-instance.html")
    return f"{page}#{alert.lower()}"
