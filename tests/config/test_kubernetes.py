"""What the two Kubernetes manifests promise, read from them, and checked against Kubernetes's own schema."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from config.loading import load
from config.server_lists import server_list
from tests.support.containerfile import ROOT, final, image_environment
from tests.support.manifests import Labels, Manifests

SHARED = Manifests(ROOT / "config" / "kubernetes.yaml")
SEVERAL = Manifests(ROOT / "config" / "kubernetes-several.yaml")
BOTH = pytest.mark.parametrize("manifests", [SHARED, SEVERAL], ids=["shared-folder", "several"])

KEYS_URL = (
    "redis+sentinel://forecast-worker:w@keys-0.keys:26379,keys-1.keys:26379,keys-2.keys:26379/keys/0"
    "?sentinel_username=forecast&sentinel_password=a"
)


def service_environment(manifests: Manifests, folder: Path) -> dict[str, str]:
    """The environment of an instance, with its secrets in `folder`."""
    keys = "redis://keys-url:6379/0" if manifests is SHARED else KEYS_URL
    (folder / "keys-url").write_text(keys)
    (folder / "cache-url").write_text("redis://cache-url:6379/0")
    for name in ("pepper", "read-token"):
        (folder / name).write_text(name * 8)
    environment = manifests.environment("10.1.2.3")
    return {name: value.replace("/secrets", str(folder)) for name, value in environment.items()}


@BOTH
@pytest.mark.parametrize("version", ["1.29", "1.37"])
def test_kubernetes_would_take_it(manifests: Manifests, version: str) -> None:
    """The oldest version that it says it is for, and a new one; members that the schema does not know are refused."""
    validator = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate: pip install -e .[deploy]")
    for each in manifests.objects:
        validator.validate(each, version, strict=True)


def injected(manifests: Manifests) -> dict[str, str]:
    """The variables of Services that have an address, as Kubernetes gives them to pods that do not decline."""
    found: dict[str, str] = {}
    for service in (one for one in manifests.all("Service") if one["spec"].get("clusterIP") != "None"):
        prefix = service["metadata"]["name"].upper().replace("-", "_")
        found |= {f"{prefix}_SERVICE_HOST": "10.0.0.1", f"{prefix}_PORT": "tcp://10.0.0.1:80"}
        for port in service["spec"]["ports"]:
            found[f"{prefix}_SERVICE_PORT_{port['name'].upper()}"] = str(port["port"])
            found[f"{prefix}_PORT_{port['port']}_TCP"] = "tcp://10.0.0.1:80"
    return found


@BOTH
def test_its_settings_are_known_and_read_from_the_secret(manifests: Manifests, tmp_path: Path) -> None:
    """Also if the variables of its Services are among them."""
    given = service_environment(manifests, tmp_path)
    assert manifests.pod["enableServiceLinks"] is False
    assert injected(manifests)
    settings = load(image_environment() | given | injected(manifests)).settings
    assert settings.keys_url == (tmp_path / "keys-url").read_text()
    assert settings.cache_url == "redis://cache-url:6379/0"
    assert settings.keys_pepper == "pepper" * 8
    assert settings.operator_read_token == "read-token" * 8
    assert {"partners": settings.listen_port, "operators": settings.operator_port} == manifests.ports("forecast")


def test_without_a_shared_folder_releases_come_from_a_bucket_and_instances_say_where_they_are(tmp_path: Path) -> None:
    """The address is the pod's, with the port of the operators' listener."""
    settings = load(image_environment() | service_environment(SEVERAL, tmp_path)).settings
    assert settings.releases_url == "s3://forecast-releases/production"
    assert settings.releases_options == {"region": "eu-west-1"}
    assert settings.advertise_url == f"http://10.1.2.3:{settings.operator_port}"
    assert settings.keys_replicas == 1
    (data,) = [volume for volume in SEVERAL.pod["volumes"] if volume["name"] == "data"]
    assert set(data) == {"name", "emptyDir"}


def test_the_url_of_the_keys_in_the_comment_is_one_and_names_every_sentinel() -> None:
    """An address counts while most of those listed name it."""
    text = (ROOT / "config" / "kubernetes-several.yaml").read_text()
    (written,) = [line.removeprefix("#").strip() for line in text.splitlines() if "redis+sentinel://" in line]
    assert written.replace(":WORKER@", ":w@").replace("=ASK", "=a") == KEYS_URL
    listed = server_list(KEYS_URL)
    assert listed is not None
    keys = SEVERAL.named("StatefulSet", "keys")
    name, replicas = keys["metadata"]["name"], keys["spec"]["replicas"]
    pods = [f"{name}-{number}.{keys['spec']['serviceName']}" for number in range(replicas)]
    assert [node.host for node in listed.nodes] == pods
    assert {node.port for node in listed.nodes} == {SEVERAL.ports("keys")["sentinels"]}
    assert f"sentinel monitor {listed.service} " in SEVERAL.named("ConfigMap", "keys")["data"]["sentinel.conf"]


@BOTH
def test_stopping_leaves_time_to_finish_requests(manifests: Manifests, tmp_path: Path) -> None:
    """After what comes before the signal, as long as the drain and 10 s."""
    settings = load(image_environment() | service_environment(manifests, tmp_path)).settings
    _, before = manifests.container["lifecycle"]["preStop"]["exec"]["command"]
    assert manifests.pod["terminationGracePeriodSeconds"] >= int(before) + settings.drain + 10
    assert int(before) > 0


@BOTH
def test_probes_ask_the_operators_port(manifests: Manifests) -> None:
    """Life decides on a restart and readiness on traffic: a Redis that is away restarts nothing."""
    paths = {"startupProbe": "/health/live", "livenessProbe": "/health/live", "readinessProbe": "/health/ready"}
    for probe, path in paths.items():
        assert manifests.container[probe]["httpGet"] == {"path": path, "port": "operators"}


@BOTH
def test_the_pod_is_hardened_and_limited(manifests: Manifests) -> None:
    """It is the image's user; what it writes is on a volume."""
    user, group = (int(number) for number in final("USER")[-1].split(":"))
    pod, container = manifests.pod, manifests.container
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["fsGroup"]) == (user, group)
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "2Gi"}
    mounts = {each["mountPath"]: each.get("readOnly", False) for each in container["volumeMounts"]}
    assert mounts == {image_environment()["FORECAST_DATA_DIR"]: False, "/secrets": True, "/tmp": False}


def test_two_instances_share_one_data_folder() -> None:
    """So its volume is one that several nodes can write."""
    assert SHARED.named("Deployment")["spec"]["replicas"] > 1
    (claim,) = [each["persistentVolumeClaim"]["claimName"] for each in SHARED.pod["volumes"] if each["name"] == "data"]
    assert SHARED.named("PersistentVolumeClaim", claim)["spec"]["accessModes"] == ["ReadWriteMany"]


def test_the_autoscaler_decides_how_many_instances_there_are() -> None:
    """A number in the Deployment would be set again each time it is applied."""
    assert "replicas" not in SEVERAL.named("Deployment")["spec"]
    scaler = SEVERAL.named("HorizontalPodAutoscaler")["spec"]
    assert scaler["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "forecast"}
    assert (
        scaler["maxReplicas"] > scaler["minReplicas"] > SEVERAL.named("PodDisruptionBudget")["spec"]["maxUnavailable"]
    )
    assert [metric["resource"]["name"] for metric in scaler["metrics"]] == ["cpu"]
    resources = SEVERAL.container["resources"]
    assert resources["requests"]["cpu"] == resources["limits"]["cpu"]  # its share is of what is requested


@BOTH
def test_one_always_serves(manifests: Manifests) -> None:
    """While nodes are drained, and while a new version comes."""
    assert manifests.named("Deployment")["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert manifests.named("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


@BOTH
def test_every_selector_is_of_the_labels_of_pods(manifests: Manifests) -> None:
    """And each Service leads to a port that they have."""
    sets = [*manifests.all("Deployment"), *manifests.all("StatefulSet")]
    labels = {one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"] for one in sets}
    for one in [*sets, *manifests.all("PodDisruptionBudget")]:
        assert one["spec"]["selector"] == {"matchLabels": labels[one["metadata"]["name"]]}
    for one in manifests.all("Service"):
        assert one["spec"]["selector"] in labels.values()
        for port in one["spec"]["ports"]:
            assert port["targetPort"] in manifests.ports(one["spec"]["selector"]["app"])


# Who may be met, as policies tell them apart.
FORECAST: Mapping[str, Labels | str] = {"pod": {"app": "forecast"}}
KEYS: Mapping[str, Labels | str] = {"pod": {"app": "keys"}}
STRANGER: Mapping[str, Labels | str] = {"pod": {"app": "stranger"}}
MONITORING: Mapping[str, Labels | str] = {"namespace": {"kubernetes.io/metadata.name": "monitoring"}}
NAMES: Mapping[str, Labels | str] = {"namespace": {"kubernetes.io/metadata.name": "kube-system"}}
CACHE: Mapping[str, Labels | str] = {"address": "10.9.8.7"}
INTERNET: Mapping[str, Labels | str] = {"address": "52.1.2.3"}
EVERYBODY = {
    "forecast": FORECAST,
    "keys": KEYS,
    "stranger": STRANGER,
    "monitoring": MONITORING,
    "names": NAMES,
    "cache": CACHE,
    "internet": INTERNET,
}


def open_ways(manifests: Manifests, app: str, direction: str) -> set[tuple[str, int, str]]:
    """With whom, at which port, by which protocol."""
    ports = [(port, protocol) for port in (53, 80, 443, 6379, 8000, 8001, 16379, 26379) for protocol in ("TCP", "UDP")]
    return {
        (name, port, protocol)
        for name, other in EVERYBODY.items()
        for port, protocol in ports
        if manifests.allows(app, direction, other, port, protocol)
    }


@BOTH
def test_everybody_reaches_the_partners_port_and_few_the_operators(manifests: Manifests) -> None:
    """Monitoring; without a shared folder, instances too, where commands ask each other's listeners."""
    operators = {"monitoring"} if manifests is SHARED else {"monitoring", "forecast"}
    expected = {(name, 8000, "TCP") for name in EVERYBODY} | {(name, 8001, "TCP") for name in operators}
    assert open_ways(manifests, "forecast", "ingress") == expected


def test_instances_reach_what_their_settings_name_and_nothing_else() -> None:
    """Names, the keys and their Sentinels, the cache, the other instances, and HTTPS for the bucket."""
    expected = {("names", 53, "UDP"), ("names", 53, "TCP"), ("keys", 6379, "TCP"), ("keys", 26379, "TCP")}
    expected |= {("cache", 6379, "TCP"), ("forecast", 8001, "TCP")} | {(name, 443, "TCP") for name in EVERYBODY}
    assert open_ways(SEVERAL, "forecast", "egress") == expected


def test_the_keys_are_for_instances_and_one_another() -> None:
    """Whoever may speak with a Sentinel could try to say who the primary is."""
    ways = {(name, port, "TCP") for name in ("forecast", "keys") for port in (6379, 26379)}
    assert open_ways(SEVERAL, "keys", "ingress") == ways
    assert open_ways(SEVERAL, "keys", "egress") == {
        ("names", 53, "UDP"),
        ("names", 53, "TCP"),
        ("keys", 6379, "TCP"),
        ("keys", 26379, "TCP"),
    }


def test_the_loss_of_a_node_leaves_most_sentinels() -> None:
    """No two are on one node, and no two are taken away at once."""
    spec = SEVERAL.named("StatefulSet", "keys")["spec"]
    (rule,) = spec["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule == {"topologyKey": "kubernetes.io/hostname", "labelSelector": spec["selector"]}
    assert SEVERAL.named("PodDisruptionBudget", "keys")["spec"]["maxUnavailable"] == 1
