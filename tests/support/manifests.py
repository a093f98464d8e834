"""What Kubernetes would make of our manifests: objects and environment."""

from pathlib import Path
from typing import Any

import yaml


class Manifests:
    """The objects of one file."""

    def __init__(self, file: Path) -> None:
        self.objects: list[dict[str, Any]] = list(yaml.load_all(file.read_text(), yaml.CSafeLoader))

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
