"""The Kubernetes manifest: its parts fit each other, the gateway and the image."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from sluice_s3.app.settings import Settings
from tests.support.environment import ROOT

OBJECTS = {one["kind"]: one for one in yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text()) if one}
POD: dict[str, Any] = OBJECTS["Deployment"]["spec"]["template"]["spec"]
GATEWAY: dict[str, Any] = POD["containers"][0]
TOLD = {entry["name"]: entry["value"] for entry in GATEWAY["env"]}


def test_everything_finds_its_pods() -> None:
    labels = OBJECTS["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert OBJECTS["Service"]["spec"]["selector"] == labels
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert OBJECTS[kind]["spec"]["selector"]["matchLabels"] == labels
    assert {one["metadata"]["namespace"] for one in OBJECTS.values()} == {"sluice"}


def test_no_variable_comes_from_a_service() -> None:
    """A service `sluice` would set SLUICE_PORT to `tcp://…`."""
    assert POD["enableServiceLinks"] is False


def test_volumes_are_mounted() -> None:
    assert {mount["name"] for mount in GATEWAY["volumeMounts"]} == {volume["name"] for volume in POD["volumes"]}
    claim = POD["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert OBJECTS["PersistentVolumeClaim"]["metadata"]["name"] == claim


def test_settings_are_taken() -> None:
    assert set(TOLD) <= {f"SLUICE_{name.upper()}" for name in Settings.model_fields}
    fields = {name.removeprefix("SLUICE_").lower(): value for name, value in TOLD.items() if name != "SLUICE_CONFIG"}
    fields["stores"] = json.loads(fields["stores"])
    fields["index"] = "postgresql://user:password@host/database"
    settings = Settings(**fields)
    mounts = {mount["name"]: mount["mountPath"] for mount in GATEWAY["volumeMounts"]}
    assert TOLD["SLUICE_CONFIG"].startswith(mounts["secrets"] + "/")
    path = settings.named_stores["default"].path
    assert path is not None
    assert path.is_relative_to(mounts["data"])
    assert not settings.run_dir.is_relative_to(mounts["data"])
    assert POD["terminationGracePeriodSeconds"] >= settings.stop_delay + settings.graceful_timeout + 10


def test_probes_and_user() -> None:
    ports = {port["name"] for port in GATEWAY["ports"]}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert GATEWAY[probe]["httpGet"]["port"] in ports
    assert GATEWAY["readinessProbe"]["httpGet"]["path"] == "/-/health/ready"
    assert GATEWAY["livenessProbe"]["httpGet"]["path"] == "/-/health/live"
    assert OBJECTS["Service"]["spec"]["ports"][0]["targetPort"] in ports
    user = re.findall(r"useradd --uid (\d+)", (ROOT / "Dockerfile").read_text())
    assert [str(POD["securityContext"]["runAsUser"])] == user
    assert GATEWAY["securityContext"]["readOnlyRootFilesystem"] is True
