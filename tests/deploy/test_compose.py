"""The files of the stack agree with each other and with what they speak of: what is seen without an engine."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
import yaml

from sluice_s3.app.settings import Settings
from tests.support.environment import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
TEXT = (ROOT / "docker-compose.yml").read_text()
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?}")
GATEWAYS = ("gateway-1", "gateway-2")
OURS = ("keys", *GATEWAYS, "single", "locust", "locust-worker", "compare")


def test_what_each_command_starts() -> None:
    by_profile: dict[str, set[str]] = {}
    for name, service in SERVICES.items():
        for profile in service.get("profiles", [""]):
            by_profile.setdefault(profile, set()).add(name)
    assert by_profile == {
        "": {"keys", "postgres", *GATEWAYS, "balancer"},
        "single": {"single"},
        "monitoring": {"prometheus", "grafana"},
        "loadtest": {"locust", "locust-worker"},
        "compare": {"compare"},
    }


def test_gateways_are_told_settings_that_there_are() -> None:
    known = {f"SLUICE_{name.upper()}" for name in Settings.model_fields}
    for name in (*GATEWAYS, "single"):
        told = SERVICES[name]["environment"]
        assert set(told) <= known, name
        given = {key: VARIABLE.sub(lambda found: found[2] or "", str(value)) for key, value in told.items()}
        fields = {key.removeprefix("SLUICE_").lower(): value for key, value in given.items() if value}
        fields.pop("config")
        Settings(**fields)  # raises for a value that no gateway takes


def test_gateways_share_a_master_key_that_is_apart_from_the_data() -> None:
    for name in (*GATEWAYS, "single"):
        assert SERVICES[name]["environment"]["SLUICE_MASTER_KEY_FILE"] == "/secrets/master-key"
        assert "secrets:/secrets:ro" in SERVICES[name]["volumes"]


def test_every_variable_has_a_default_and_is_in_the_example() -> None:
    used = dict(VARIABLE.findall(TEXT))
    example = dict(re.findall(r"^#(\w+)=(.*)$", (ROOT / ".env.example").read_text(), re.M))
    assert used.keys() == example.keys()
    defaults = Settings.model_fields
    for name, value in example.items():
        field = name.removeprefix("SLUICE_").lower()
        if used[name]:
            assert value == used[name], name
        elif value:
            assert value == str(defaults[field].default).lower(), name
    # nothing in the example is set, or a copy of it would bake something in
    assert not re.findall(r"^[^#\n]", (ROOT / ".env.example").read_text(), re.M)


def test_no_secret_and_no_open_door() -> None:
    for name, service in SERVICES.items():
        for key, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|TOKEN", key):
                assert key.endswith("_FILE") or value == f"${{{key}:-}}", f"{name}: {key}"
        for port in service.get("ports", []):
            default = VARIABLE.sub(lambda found: found[2], port)
            assert default.startswith("127.0.0.1:"), f"{name} is offered to others: {port}"


@pytest.mark.parametrize("name", OURS)
def test_our_containers_may_do_little(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "/tmp" in service["tmpfs"]
    assert "user" not in service, "the image says who"


def test_what_is_mounted_is_there() -> None:
    for name, service in SERVICES.items():
        for mount in service.get("volumes", []):
            source = VARIABLE.sub(lambda found: found[2], mount).partition(":")[0]
            if source.startswith("."):
                assert (ROOT / source).is_dir(), f"{name}: {source}"
            else:
                assert source in COMPOSE["volumes"], f"{name}: {source}"
    mounted = {mount.partition(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])}
    assert COMPOSE["volumes"].keys() - mounted == {"compare-a", "compare-b", "compare-results"}


def _directories(target: str) -> dict[str, int]:
    """Modes of the directories that a target of the Dockerfile and those it is built from give to user 10001."""
    text = re.sub(r"\n\s*#.*", "", (ROOT / "Dockerfile").read_text()).replace("\\\n", " ")
    stages = re.split(r"^FROM (?=\S+ AS \S+$)", text, flags=re.M)[1:]
    bodies = {words[2]: (words[0], stage) for stage in stages if (words := stage.split(maxsplit=3))}
    found: dict[str, int] = {}
    while target in bodies:
        target, body = bodies[target]
        for mode, paths in re.findall(r"install -d -o 10001 -g 10001 -m (\d+) ((?: */\S+)+)", body):
            found |= dict.fromkeys(paths.split(), int(mode, 8))
    return found


def _named_volumes(service: dict[str, Any]) -> dict[str, str]:
    """Mount points of a service's named volumes, by volume."""
    mounts = [VARIABLE.sub(lambda found: found[2], mount).split(":") for mount in service.get("volumes", [])]
    return {mount[0]: mount[1] for mount in mounts if mount[0] in COMPOSE["volumes"]}


@pytest.mark.parametrize("name", OURS)
def test_the_image_owns_what_named_volumes_are_mounted_on(name: str) -> None:
    """Docker makes a new volume root's where the image has no such directory; podman hides that."""
    targets = {service["image"]: service["build"]["target"] for service in SERVICES.values() if "build" in service}
    owned = _directories(targets[SERVICES[name]["image"]])
    others = {volume for other in SERVICES.keys() - {*OURS} for volume in _named_volumes(SERVICES[other])}
    for volume, point in _named_volumes(SERVICES[name]).items():
        assert point in owned, f"{name}: {volume} would be root's"
        assert volume not in others or owned[point] & 0o005 == 0o005, f"{name}: other users cannot read {volume}"


def test_every_service_with_our_image_is_known() -> None:
    built = {service["image"] for service in SERVICES.values() if "build" in service}
    assert {name for name, service in SERVICES.items() if service["image"] in built} == {*OURS}


def test_the_gateways_are_alike_and_get_time_to_stop() -> None:
    assert SERVICES["gateway-1"] == SERVICES["gateway-2"]
    told = SERVICES["gateway-1"]["environment"]
    needed = float(told["SLUICE_STOP_DELAY"]) + Settings.model_fields["graceful_timeout"].default + 10
    assert float(SERVICES["gateway-1"]["stop_grace_period"].removesuffix("s")) >= needed


def test_balancer_and_monitoring_know_all_gateways() -> None:
    balancer = (ROOT / "deploy" / "haproxy" / "haproxy.cfg").read_text()
    servers = re.findall(r"^    server (\S+) (\S+):9000$", balancer, re.M)
    assert servers == [(name, name) for name in GATEWAYS]
    prometheus = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    scraped = {
        job["job_name"]: {name for entry in job["dns_sd_configs"] for name in entry["names"]}
        for job in prometheus["scrape_configs"]
    }
    assert scraped == {"sluice": {*GATEWAYS, "single"}, "balancer": {"balancer"}}
    assert [(ROOT / "deploy" / "prometheus" / name).is_file() for name in prometheus["rule_files"]] == [True]


def test_only_one_service_builds_an_image() -> None:
    built = [service["image"] for service in SERVICES.values() if "build" in service]
    # load generators share an anchor, with the same target, and are not started together but by their profile
    assert built.count(SERVICES["keys"]["image"]) == 1


def test_services_wait_for_what_they_need() -> None:
    def conditions(name: str) -> dict[str, str]:
        return {of: entry["condition"] for of, entry in SERVICES[name].get("depends_on", {}).items()}

    for name in GATEWAYS:
        assert conditions(name) == {"keys": "service_completed_successfully", "postgres": "service_healthy"}
    assert conditions("balancer") == dict.fromkeys(GATEWAYS, "service_healthy")
    assert conditions("single") == {"keys": "service_completed_successfully"}
    assert conditions("postgres") == {"keys": "service_completed_successfully"}


def test_the_image_has_every_package_and_nothing_secret() -> None:
    copied = set(re.findall(r"^COPY (\w+) \w+$", (ROOT / "Dockerfile").read_text(), re.M))
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    assert copied == {folder.partition("/")[0] for folder in found.values()}
    wanted = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.M)
    assert set(wanted) == {
        *copied,
        "pyproject.toml",
        "setup.py",
        "LICENSE",
        "NOTICE",
        "README.md",
        "deploy/entrypoint.sh",
        "deploy/healthcheck.py",
        "deploy/keys.py",
        "deploy/mc",
        "deploy/requirements.txt",
        "deploy/requirements-loadtest.txt",
    }


def test_the_dashboard_is_where_grafana_looks() -> None:
    provider = yaml.safe_load((ROOT / "deploy/grafana/provisioning/dashboards/sluice.yml").read_text())["providers"][0]
    volumes = dict(mount.split(":")[:2] for mount in SERVICES["grafana"]["volumes"])
    assert volumes["./deploy/grafana/dashboards"] == provider["options"]["path"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == provider["options"]["path"] + "/sluice.json"
    source = yaml.safe_load((ROOT / "deploy/grafana/provisioning/datasources/prometheus.yml").read_text())
    dashboard = json.loads((ROOT / "deploy/grafana/dashboards/sluice.json").read_text())
    used = {panel["datasource"]["uid"] for panel in dashboard["panels"] if "datasource" in panel}
    assert used == {source["datasources"][0]["uid"]}
