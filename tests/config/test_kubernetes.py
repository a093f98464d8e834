"""What config/kubernetes.yaml promises, read from it, and checked against Kubernetes's own schema."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from config.loading import load
from tests.support.containerfile import ROOT, final, image_environment

MANIFEST = ROOT / "config" / "kubernetes.yaml"
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all(MANIFEST.read_text()))


def named(kind: str, name: str = "forecast") -> dict[str, Any]:
    (found,) = [one for one in OBJECTS if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


POD: dict[str, Any] = named("Deployment")["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
ENVIRONMENT: dict[str, str] = {each["name"]: each["value"] for each in CONTAINER["env"]}
PORTS: dict[str, int] = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}


@pytest.mark.parametrize("version", ["1.29", "1.37"])
def test_kubernetes_would_take_it(version: str) -> None:
    """The oldest version that it says it is for, and a new one; members that the schema does not know are refused."""
    validator = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate: pip install -e .[deploy]")
    for each in OBJECTS:
        validator.validate(each, version, strict=True)


def injected() -> dict[str, str]:
    """The variables of Services that have an address, as Kubernetes gives them to pods that do not decline."""
    found: dict[str, str] = {}
    for service in (one for one in OBJECTS if one["kind"] == "Service" and one["spec"].get("clusterIP") != "None"):
        prefix = service["metadata"]["name"].upper().replace("-", "_")
        found |= {f"{prefix}_SERVICE_HOST": "10.0.0.1", f"{prefix}_PORT": "tcp://10.0.0.1:80"}
        for port in service["spec"]["ports"]:
            found[f"{prefix}_SERVICE_PORT_{port['name'].upper()}"] = str(port["port"])
            found[f"{prefix}_PORT_{port['port']}_TCP"] = "tcp://10.0.0.1:80"
    return found


def test_its_settings_are_known_and_read_from_the_secret(tmp_path: Path) -> None:
    """Also if the variables of its Services are among them."""
    for name in ("keys-url", "cache-url"):
        (tmp_path / name).write_text(f"redis://{name}:6379/0")
    for name in ("pepper", "read-token"):
        (tmp_path / name).write_text(name * 8)
    given = {name: value.replace("/secrets", str(tmp_path)) for name, value in ENVIRONMENT.items()}
    assert POD["enableServiceLinks"] is False
    assert injected()
    settings = load(image_environment() | given | injected()).settings
    assert settings.keys_url == "redis://keys-url:6379/0"
    assert settings.cache_url == "redis://cache-url:6379/0"
    assert settings.keys_pepper == "pepper" * 8
    assert settings.operator_read_token == "read-token" * 8
    assert {"partners": settings.listen_port, "operators": settings.operator_port} == PORTS


def test_stopping_leaves_time_to_finish_requests() -> None:
    """After what comes before the signal, as long as the drain and 10 s."""
    _, before = CONTAINER["lifecycle"]["preStop"]["exec"]["command"]
    assert POD["terminationGracePeriodSeconds"] >= int(before) + float(ENVIRONMENT["FORECAST_DRAIN"]) + 10


def test_probes_ask_the_operators_port() -> None:
    """Life decides on a restart and readiness on traffic: a Redis that is away restarts nothing."""
    paths = {"startupProbe": "/health/live", "livenessProbe": "/health/live", "readinessProbe": "/health/ready"}
    for probe, path in paths.items():
        assert CONTAINER[probe]["httpGet"] == {"path": path, "port": "operators"}


def test_the_pod_is_hardened_and_limited() -> None:
    """It is the image's user; what it writes is on a volume."""
    user, group = (int(number) for number in final("USER")[-1].split(":"))
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert (POD["securityContext"]["runAsUser"], POD["securityContext"]["fsGroup"]) == (user, group)
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert POD["automountServiceAccountToken"] is False
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert CONTAINER["resources"]["limits"] == {"cpu": "2", "memory": "2Gi"}
    mounts = {each["mountPath"]: each.get("readOnly", False) for each in CONTAINER["volumeMounts"]}
    assert mounts == {image_environment()["FORECAST_DATA_DIR"]: False, "/secrets": True, "/tmp": False}


def test_several_instances_share_one_data_folder_and_one_always_serves() -> None:
    """While nodes are drained, and while a new version comes."""
    deployment = named("Deployment")["spec"]
    assert deployment["replicas"] > 1
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    (claim,) = [volume["persistentVolumeClaim"]["claimName"] for volume in POD["volumes"] if volume["name"] == "data"]
    assert named("PersistentVolumeClaim", claim)["spec"]["accessModes"] == ["ReadWriteMany"]
    assert named("PodDisruptionBudget")["spec"]["maxUnavailable"] < deployment["replicas"]


def test_partners_reach_their_port_and_nobody_but_monitoring_the_operators() -> None:
    """Every selector is of the pods' label."""
    labels = named("Deployment")["spec"]["template"]["metadata"]["labels"]
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert named(kind)["spec"]["selector"] == {"matchLabels": labels}
    (port,) = named("Service")["spec"]["ports"]
    assert port["targetPort"] == "partners"
    assert named("Service")["spec"]["selector"] == named("Service", "forecast-operators")["spec"]["selector"] == labels
    open_to_all = [rule for rule in named("NetworkPolicy")["spec"]["ingress"] if "from" not in rule]
    assert [rule["ports"] for rule in open_to_all] == [[{"port": "partners"}]]
