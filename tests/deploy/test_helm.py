"""The Helm chart: its values fit their schema, and what it makes fits the plain manifest and the gateway."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice_s3.app import __version__
from sluice_s3.app.settings import Settings
from tests.support.environment import ROOT

CHART = ROOT / "deploy" / "helm" / "sluice"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
CLUSTER = """
mode: cluster
existingSecret: sluice
metrics: {serviceMonitor: {enabled: true}}
ingress: {enabled: true, host: s3.example.com, tlsSecret: tls}
"""

CONSOLE = """
console:
  enabled: true
  url: https://console.example.com
  s3Url: https://s3.example.com
  ingress: {enabled: true, tlsSecret: tls}
"""


def _faults(where: str, value: Any, schema: dict[str, Any]) -> list[str]:
    """What of draft 7 the schema uses, without the defaults of the values being invalid."""
    found = []
    if "type" in schema and not isinstance(value, TYPES[schema["type"]]):
        found.append(f"{where} is no {schema['type']}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where} is none of {schema['enum']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{where} does not match")
    properties = schema.get("properties", {})
    found += [f"{where}.{name} is missing" for name in schema.get("required", ()) if name not in value]
    if schema.get("additionalProperties") is False:
        found += [f"{where}.{name} is not in the schema" for name in value.keys() - properties.keys()]
    for name in properties:
        if isinstance(value, dict) and name in value:
            found += _faults(f"{where}.{name}", value[name], properties[name])
    return found


def _undocumented(where: str, value: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    """Names of the schema that the values do not show."""
    found = [f"{where}.{name}" for name in schema.get("properties", {}).keys() - value.keys()]
    for name, one in schema.get("properties", {}).items():
        if isinstance(value.get(name), dict):
            found += _undocumented(f"{where}.{name}", value[name], one)
    return found


def test_the_values_fit_their_schema() -> None:
    assert _faults("values", VALUES, SCHEMA) == []
    assert sorted(_undocumented("values", VALUES, SCHEMA)) == ["values.global", "values.nameOverride"]
    assert _faults("values", {**VALUES, "mode": "many", "replica": 1}, SCHEMA) == [
        "values.replica is not in the schema",
        "values.mode is none of ['single', 'cluster']",
    ]


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["name"], chart["appVersion"]) == ("sluice", __version__)


def _need_helm() -> None:
    if shutil.which("helm") is None:  # CI has none: no distribution packages it
        pytest.skip("not installed: helm (go install helm.sh/helm/v3/cmd/helm@latest)")


def _template(tmp_path: Path, values: str, *, check: bool = True) -> Any:
    _need_helm()
    file = tmp_path / "values.yaml"
    file.write_text(values)
    command = ["helm", "template", "sluice", CHART, "--namespace", "sluice", "--kube-version", "1.30", "--values", file]
    ended = subprocess.run(command, capture_output=True, text=True)
    if not check:
        return ended
    assert ended.returncode == 0, ended.stderr
    objects = [one for one in yaml.safe_load_all(ended.stdout) if one]
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in objects}


def _settings(pod: dict[str, Any]) -> Settings:
    environment = {entry["name"]: entry["value"] for entry in pod["containers"][0]["env"]}
    assert environment.keys() <= {f"SLUICE_{name.upper()}" for name in Settings.model_fields}
    fields = {name.removeprefix("SLUICE_").lower(): value for name, value in environment.items()}
    if "stores" in fields:
        fields["stores"] = json.loads(fields["stores"])
        fields["index"] = "postgresql://user:password@host/database"
    fields.pop("config", None)
    return Settings(**fields)


@pytest.mark.parametrize("values", ["{}", CLUSTER, CONSOLE])
def test_helm_has_nothing_against_it(tmp_path: Path, values: str) -> None:
    _need_helm()
    (tmp_path / "values.yaml").write_text(values)
    command = ["helm", "lint", "--strict", CHART, "--values", tmp_path / "values.yaml"]
    linted = subprocess.run(command, capture_output=True, text=True)
    assert linted.returncode == 0, linted.stdout


def test_a_cluster_is_what_the_plain_manifest_has(tmp_path: Path) -> None:
    found = _template(tmp_path, CLUSTER)
    plain = [one for one in yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text()) if one]
    for one in plain:
        made = found[f"{one['kind']}/{one['metadata']['name']}"]["spec"]
        if one["kind"] != "Deployment":
            assert _without_labels(one["spec"]).items() <= _without_labels(made).items()
            continue
        assert (made["replicas"], made["strategy"]) == (one["spec"]["replicas"], one["spec"]["strategy"])
        pod, expected = made["template"]["spec"], one["spec"]["template"]["spec"]
        (container,), (wanted,) = pod.pop("containers"), expected.pop("containers")
        assert _without_labels(pod) == _without_labels(expected)
        by_name = {entry["name"]: entry["value"] for entry in wanted.pop("env")}
        env = {entry["name"]: entry["value"] for entry in container.pop("env")}
        assert json.loads(env.pop("SLUICE_STORES")) == json.loads(by_name.pop("SLUICE_STORES"))
        assert env == by_name
        assert container.pop("imagePullPolicy") == "IfNotPresent"
        assert container == wanted
    assert found["ServiceMonitor/sluice"]["spec"]["endpoints"][0]["port"] == "admin"
    assert found["Ingress/sluice"]["spec"]["rules"][0]["host"] == "s3.example.com"


def _without_labels(spec: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps({name: value for name, value in spec.items() if name != "selector"})
    return dict(json.loads(re.sub(r', "app.kubernetes.io/instance": "sluice"', "", text)))


def test_one_gateway_has_a_volume_of_its_own_and_an_init_file(tmp_path: Path) -> None:
    found = _template(
        tmp_path,
        "{init: '[buckets.photos]', initSecret: keys, settings: {region: auto, workers: 3, metrics_buckets: 0},"
        " secretSettings: {admin_token: 'a \"secret\" token'}}",
    )
    spec = found["StatefulSet/sluice"]["spec"]
    settings = _settings(spec["template"]["spec"])
    assert (settings.region, settings.workers, settings.index_url) == ("auto", 3, None)
    assert settings.init_file == Path("/init/init.toml")
    assert spec["volumeClaimTemplates"][0]["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert "[buckets.photos]" in found["ConfigMap/sluice-init"]["data"]["init.toml"]
    secret = tmp_path / "sluice.toml"
    secret.write_text(found["Secret/sluice"]["stringData"]["sluice.toml"])
    token = Settings(config=secret).admin_token
    assert token is not None
    assert token.get_secret_value() == 'a "secret" token'
    pod = spec["template"]["spec"]
    mounted = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]} | {"data"}


def test_the_console_has_a_service_and_an_ingress_without_metrics(tmp_path: Path) -> None:
    found = _template(tmp_path, CONSOLE)
    pod = found["StatefulSet/sluice"]["spec"]["template"]["spec"]
    settings = _settings(pod)
    assert (settings.console_url, settings.public_url) == ("https://console.example.com", "https://s3.example.com")
    (port,) = found["Service/sluice-console"]["spec"]["ports"]
    assert port["targetPort"] in {one["name"] for one in pod["containers"][0]["ports"]}
    (rule,) = found["Ingress/sluice-console"]["spec"]["rules"]
    assert rule["host"] == "console.example.com"
    paths = {(one["path"], one["pathType"]) for one in rule["http"]["paths"]}
    assert paths == {("/", "Exact"), ("/console", "Prefix"), ("/api", "Prefix")}
    without = _template(tmp_path, "console: {enabled: true}")
    assert "Ingress/sluice-console" not in without
    assert "Service/sluice-console" not in _template(tmp_path, "{}")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("mode: cluster", "mode cluster needs secretSettings or existingSecret"),
        ("replica: 3", "replica"),
        ("settings: {Region: x}", "Region"),
        ("ingress: {enabled: true}", "ingress.host is needed"),
        ("console: {ingress: {enabled: true}}", "console.ingress needs console.enabled"),
        ("console: {enabled: true, ingress: {enabled: true}}", "console.url is needed"),
        ("console: {enabled: true, url: console.example.com}", "url"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, values: str, message: str) -> None:
    ended = _template(tmp_path, values, check=False)
    assert ended.returncode != 0
    assert message in ended.stderr
