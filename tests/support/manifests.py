"""What Kubernetes would make of our manifests: objects, environment, and which connections the policies allow."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

Labels = Mapping[str, str]
_ANYWHERE = {"namespaceSelector", "podSelector"}


class Manifests:
    """The objects of one file."""

    def __init__(self, file: Path) -> None:
        self.objects: list[dict[str, Any]] = list(yaml.safe_load_all(file.read_text()))

    def named(self, kind: str, name: str = "forecast") -> dict[str, Any]:
        (found,) = [one for one in self.objects if (one["kind"], one["metadata"]["name"]) == (kind, name)]
        return found

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.objects if one["kind"] == kind]

    @property
    def pod(self) -> dict[str, Any]:
        """The service's pods."""
        spec: dict[str, Any] = self.named("Deployment")["spec"]["template"]["spec"]
        return spec

    @property
    def container(self) -> dict[str, Any]:
        (only,) = self.pod["containers"]
        found: dict[str, Any] = only
        return found

    def environment(self, pod_ip: str) -> dict[str, str]:
        """As a container sees it: $(NAME) is what comes before it in the list."""
        known: dict[str, str] = {}
        for each in self.container["env"]:
            if "valueFrom" in each:
                assert each["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
                known[each["name"]] = pod_ip
                continue
            value = each["value"]
            for name, said in known.items():
                value = value.replace(f"$({name})", said)
            known[each["name"]] = value
        return known

    def ports(self, app: str) -> dict[str, int]:
        """Named ports of the pods with this label."""
        sets = [*self.all("Deployment"), *self.all("StatefulSet")]
        (pods,) = [
            one["spec"]["template"] for one in sets if one["spec"]["template"]["metadata"]["labels"]["app"] == app
        ]
        return {port["name"]: port["containerPort"] for each in pods["spec"]["containers"] for port in each["ports"]}

    def allows(self, app: str, direction: str, other: Mapping[str, Labels | str], port: int, protocol: str) -> bool:
        """Whether a pod of `app` may be reached from `other` (`ingress`), or may reach it (`egress`). `other` has `pod`
        labels, those of its `namespace` if that is another one, or an `address` outside of the cluster."""
        policies = [
            one["spec"]
            for one in self.all("NetworkPolicy")
            if one["spec"]["podSelector"] == {"matchLabels": {"app": app}}
            and direction.capitalize() in one["spec"]["policyTypes"]
        ]
        rules = [rule for policy in policies for rule in policy.get(direction, [])]
        named = self.ports(app)
        return not policies or any(_matches(rule, direction, other, (port, protocol), named) for rule in rules)


def _matches(
    rule: dict[str, Any],
    direction: str,
    other: Mapping[str, Labels | str],
    wanted: tuple[int, str],
    named: dict[str, int],
) -> bool:
    ports = [(named.get(one["port"], one["port"]), one.get("protocol", "TCP")) for one in rule["ports"]]
    peers = rule.get("from" if direction == "ingress" else "to")
    return wanted in ports and (peers is None or any(_is_peer(peer, other) for peer in peers))


def _is_peer(peer: dict[str, Any], other: Mapping[str, Labels | str]) -> bool:
    if "ipBlock" in peer:
        inside = str(other.get("address", "")).startswith("10.")
        assert peer["ipBlock"] == {"cidr": "10.0.0.0/8"}
        return inside
    assert len(peer) == 1
    assert set(peer) <= _ANYWHERE
    if "namespaceSelector" in peer:
        return bool(other.get("namespace") == peer["namespaceSelector"]["matchLabels"])
    return "namespace" not in other and bool(other.get("pod") == peer["podSelector"]["matchLabels"])
