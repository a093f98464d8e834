"""The profile `monitoring` of compose.yaml: Prometheus, Alertmanager and Grafana, and the files they are given."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.containerfile import ROOT

COMPOSE: dict[str, Any] = yaml.load((ROOT / "compose.yaml").read_text(), yaml.CSafeLoader)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OF_PROFILE = {name: service for name, service in SERVICES.items() if service.get("profiles") == ["monitoring"]}
CONFIG = ROOT / "config"
PROMETHEUS: dict[str, Any] = yaml.safe_load((CONFIG / "prometheus.yml").read_text())
SOURCES: list[dict[str, Any]] = yaml.safe_load((CONFIG / "grafana" / "datasources.yml").read_text())["datasources"]
PROVIDERS: list[dict[str, Any]] = yaml.safe_load((CONFIG / "grafana" / "dashboards.yml").read_text())["providers"]
DASHBOARD: dict[str, Any] = json.loads((CONFIG / "grafana" / "dashboard.json").read_text())


def mounted(name: str) -> dict[str, Path]:
    """The files of this checkout that a service sees, by their path in its container; all of them read-only."""
    found = {}
    for line in SERVICES[name]["volumes"]:
        if line.startswith("./"):
            source, path, mode = line.split(":")
            assert mode == "ro"
            found[path] = ROOT / source
    return found


def tool(name: str, package: str, *arguments: str) -> None:
    """Runs a checker of Debian's `package`; the test fails with what it prints."""
    if shutil.which(name) is None:
        pytest.skip(f"needs {name}: apt-get install {package}")
    done = subprocess.run([name, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_finds_the_instance_its_token_and_its_rules() -> None:
    (job,) = PROMETHEUS["scrape_configs"]
    assert job["job_name"] == "forecast"
    assert job["static_configs"] == [{"targets": ["forecast:8001"]}]
    token = job["authorization"]["credentials_file"]
    assert SERVICES["forecast"]["environment"]["FORECAST_OPERATOR_READ_TOKEN_FILE"] == token
    files = mounted("prometheus")
    assert files["/etc/prometheus/prometheus.yml"] == CONFIG / "prometheus.yml"
    assert [f"/etc/prometheus/{name}" for name in PROMETHEUS["rule_files"]] == ["/etc/prometheus/alerts.yml"]
    assert files["/etc/prometheus/alerts.yml"] == CONFIG / "alerts.yml"
    (sent_to,) = PROMETHEUS["alerting"]["alertmanagers"][0]["static_configs"]
    assert sent_to["targets"] == ["alertmanager:9093"]
    assert "monitoring" in SERVICES["alertmanager"]["networks"]


def test_prometheus_takes_its_configuration(tmp_path: Path) -> None:
    text = (CONFIG / "prometheus.yml").read_text().replace("/tokens", str(tmp_path))
    (tmp_path / "prometheus.yml").write_text(text)
    (tmp_path / "read-token").write_text("x" * 64)
    shutil.copy(CONFIG / "alerts.yml", tmp_path)
    tool("promtool", "prometheus", "check", "config", str(tmp_path / "prometheus.yml"))


def test_alertmanager_takes_its_configuration_and_routes_by_severity() -> None:
    """By its own checker. Whatever has no route of its own goes to the operators too."""
    path = str(CONFIG / "alertmanager.yml")
    tool("amtool", "prometheus-alertmanager", "check-config", path)
    for severity in ("critical", "warning"):
        routed = ("config", "routes", "test", f"--config.file={path}", "--verify.receivers=operators")
        tool("amtool", "prometheus-alertmanager", *routed, f"severity={severity}")
    config = yaml.safe_load((CONFIG / "alertmanager.yml").read_text())
    (receiver,) = config["receivers"]
    webhook = receiver["slack_configs"][0]["api_url_file"]
    assert f"${{ALERT_WEBHOOK:-/dev/null}}:{webhook}:ro" in SERVICES["alertmanager"]["volumes"]
    assert mounted("alertmanager") == {"/etc/alertmanager/alertmanager.yml": CONFIG / "alertmanager.yml"}


def test_grafana_is_given_its_sources_and_its_dashboard() -> None:
    """Each file is where Grafana, or the file before it, looks."""
    files = mounted("grafana")
    assert files["/etc/grafana/provisioning/datasources/forecast.yml"] == CONFIG / "grafana" / "datasources.yml"
    assert files["/etc/grafana/provisioning/dashboards/forecast.yml"] == CONFIG / "grafana" / "dashboards.yml"
    (provider,) = PROVIDERS
    path = f"{provider['options']['path']}/dashboard.json"
    assert files[path] == CONFIG / "grafana" / "dashboard.json"
    assert OF_PROFILE["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == path
    assert {source["url"] for source in SOURCES} == {"http://prometheus:9090", "http://alertmanager:9093"}


PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def test_every_panel_asks_the_provisioned_source_and_has_a_place() -> None:
    """Ids are unique, and no two panels overlap: Grafana would show neither as meant."""
    uids = {source["uid"] for source in SOURCES}
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        where = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(where["x"], where["x"] + where["w"])
            for y in range(where["y"], where["y"] + where["h"])
        }
        assert not taken & cells, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for panel in PANELS:
        assert panel["datasource"]["uid"] in uids
        assert all(target["datasource"]["uid"] in uids for target in panel["targets"])
        assert panel["title"]


# The charts of the operators' page, and the panel with the same figures.
OF_PAGE = {
    "Answers a second": "Answers by tier",
    "Hit rate by tier": "Hit rate by tier",
    "Hit rate by release": "Hit rate by release",
    "Refused and failed a second": "Requests by status",
    "Time to answer": "Latency",
    "Requests by time to answer": "Requests by latency",
    "Evictions a second": "Evictions and refused answers",
    "Cache memory": "Memory",
    "Connections": "Connections",
}


def test_every_chart_of_the_page_has_its_panel() -> None:
    charts = (CONFIG.parent / "service/operators/page/charts.js").read_text()
    assert re.findall(r'\{ id: "[\w-]+", title: "([^"]+)"', charts) == list(OF_PAGE)
    assert set(OF_PAGE.values()) <= {panel["title"] for panel in PANELS}


def test_the_dashboard_is_one_by_grafana_s_own_schema() -> None:
    """Whatever the schema does not know is lost on the way through it; two members of the data source alone are."""
    pytest.importorskip("grafana_foundation_sdk", reason="needs grafana-foundation-sdk: pip install -e .[deploy]")
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    register_default_plugins()
    known = json.loads(JSONEncoder().encode(Dashboard.from_json(DASHBOARD)))
    assert set(lost(DASHBOARD, known)) == {"annotations.list.0.step", "annotations.list.0.titleFormat"}


def lost(ours: Any, known: Any, place: str = "") -> list[str]:
    """Where `known` lacks a member of `ours`, or has another value; null is the same as absent."""
    if isinstance(ours, dict) and isinstance(known, dict):
        return [
            each
            for name, value in ours.items()
            if value is not None
            for each in lost(value, known.get(name), f"{place}{name}.")
        ]
    if isinstance(ours, list) and isinstance(known, list) and len(ours) == len(known):
        return [each for i, value in enumerate(ours) for each in lost(value, known[i], f"{place}{i}.")]
    return [] if ours == known else [place.rstrip(".")]
