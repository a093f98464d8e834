"""The Kubernetes manifests: by Kubernetes's own schema, and where they and other files have to agree."""

from pathlib import Path

import pytest

from config.loading import load
from config.server_lists import server_list
from tests.support.containerfile import ROOT, final, image_environment
from tests.support.manifests import Manifests

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


def test_instances_without_a_shared_folder_say_where_they_are(tmp_path: Path) -> None:
    settings = load(image_environment() | service_environment(SEVERAL, tmp_path)).settings
    assert settings.advertise_url == f"http://10.1.2.3:{settings.operator_port}"


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
def test_the_pod_is_the_user_of_the_image_and_writes_to_volumes(manifests: Manifests) -> None:
    user, group = (int(number) for number in final("USER")[-1].split(":"))
    context = manifests.pod["securityContext"]
    assert (context["runAsUser"], context["fsGroup"]) == (user, group)
    mounts = {each["mountPath"]: each.get("readOnly", False) for each in manifests.container["volumeMounts"]}
    assert mounts == {image_environment()["FORECAST_DATA_DIR"]: False, "/secrets": True, "/tmp": False}


@BOTH
def test_every_selector_is_of_the_labels_of_pods(manifests: Manifests) -> None:
    sets = [*manifests.all("Deployment"), *manifests.all("StatefulSet")]
    labels = {one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"] for one in sets}
    for one in [*sets, *manifests.all("PodDisruptionBudget")]:
        assert one["spec"]["selector"] == {"matchLabels": labels[one["metadata"]["name"]]}
    for one in manifests.all("Service"):
        assert one["spec"]["selector"] in labels.values()
        for port in one["spec"]["ports"]:
            assert port["targetPort"] in manifests.ports(one["spec"]["selector"]["app"])


# Who may be met, as policies tell them apart.
