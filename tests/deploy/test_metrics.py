"""Dashboard and alerts ask for metrics and labels that a gateway really has."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from botocore.exceptions import ClientError
from prometheus_client.parser import text_string_to_metric_families

from tests.support.environment import ROOT, need
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

DEPLOY = ROOT / "deploy"
NAME = re.compile(r"\b(?:sluice|process)_\w+(?=[{\[\s)]|$)")
SELECTED = re.compile(r"\b((?:sluice|process)_\w+)\{([^}]*)}")
GROUPED = re.compile(r"\bby \(([^)]*)\) ")
BY_PROMETHEUS = {"instance", "job"}


def _panels() -> list[tuple[str, str]]:
    board = json.loads((DEPLOY / "grafana" / "dashboards" / "sluice.json").read_text())
    return [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel.get("targets", [])]


def _alerts() -> list[tuple[str, str]]:
    groups = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"]
    return [(rule["alert"], rule["expr"]) for group in groups for rule in group["rules"]]


QUERIES = _panels() + _alerts()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, set[str]]]:
    """Names of samples with their labels, after some requests."""
    directory = tmp_path_factory.mktemp("metrics")
    with Gateway(directory / "data", workers=1, options=("--admin-port", "0")) as gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket="first")
        for size in (100, 1_000_000):
            s3.put_object(Bucket="first", Key="k", Body=bytes(size))
            s3.get_object(Bucket="first", Key="k")["Body"].read()
        with pytest.raises(ClientError):
            s3.get_object(Bucket="first", Key="missing")
        eventually(lambda: "\nsluice_bucket_bytes{" in httpx.get(gateway.admin + "/metrics").text)
        found: dict[str, set[str]] = {}
        for family in text_string_to_metric_families(httpx.get(gateway.admin + "/metrics").text):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
        yield found


@pytest.mark.parametrize(("title", "query"), QUERIES, ids=[title for title, _ in QUERIES])
def test_what_is_asked_for_is_there(exported: dict[str, set[str]], title: str, query: str) -> None:
    names = set(NAME.findall(query))
    assert names or re.search(r"\bup\{", query)
    assert names <= exported.keys()
    for name, matchers in SELECTED.findall(query):
        for label in re.findall(r'(\w+)(?:=~|!=|=)"', matchers):
            assert label in exported[name] | BY_PROMETHEUS, f"{name} has no label {label}"
    labels = set().union(*(exported[name] for name in names)) | BY_PROMETHEUS
    for group in GROUPED.findall(query):
        assert {label.strip() for label in group.split(",")} <= labels


def _samples(gateway: Gateway) -> dict[tuple[str, ...], float]:
    """All samples by name and values of labels, these sorted."""
    families = text_string_to_metric_families(httpx.get(gateway.admin + "/metrics").text)
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value for family in families for sample in family.samples
    }


def test_buckets_and_processes_are_there(tmp_path: Path) -> None:
    with Gateway(tmp_path / "data", workers=2, options=("--admin-port", "0")) as gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket="first")
        s3.put_object(Bucket="first", Key="k", Body=bytes(1000))
        with pytest.raises(ClientError):
            s3.get_object(Bucket="missing", Key="k")
        # a busy machine counts the bucket after the first scrape
        eventually(lambda: ("sluice_bucket_bytes", "first") in _samples(gateway))
        found = _samples(gateway)
        assert found["sluice_bucket_bytes", "first"] == 1000
        assert found["sluice_bucket_objects", "first"] == 1
        assert found["sluice_bucket_requests_total", "2xx", "first"] >= 1
        assert found["sluice_bucket_transfer_bytes_total", "first", "in"] >= 1000
        assert not any("missing" in labels for labels in found)
        started = [labels for labels in found if labels[0] == "process_start_time_seconds"]
        assert {int(pid) for _, pid, _ in started} > set(gateway.children())
        assert sorted(kind for _, _, kind in started) == ["admin", "launcher", "worker", "worker"]
        for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"):
            assert all(value > 0 for labels, value in found.items() if labels[0] == name)


def test_integrity_alarms_count(tmp_path: Path) -> None:
    """The metric of the most important alert, from a disk that lost something."""
    options = ("--admin-port", "0")
    with Gateway(tmp_path / "data", workers=2, options=options, env={"SLUICE_SCRUB_RATE": "0"}) as gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket="first")
        s3.put_object(Bucket="first", Key="k", Body=bytes(1_000_000))
        assert "\nsluice_integrity_alarms_total 0\n" in httpx.get(gateway.admin + "/metrics").text
        (blob,) = [path for path in (gateway.data / "data").glob("*/*") if path.suffix == ""]
        blob.unlink()
        with pytest.raises(ClientError, match="ServiceUnavailable"):
            s3.get_object(Bucket="first", Key="k")
        count = re.findall(r"\nsluice_integrity_alarms_total (\d+)\n", httpx.get(gateway.admin + "/metrics").text)
        assert int(count[0]) >= 1


def test_prometheus_takes_the_files() -> None:
    need("promtool")
    configuration = DEPLOY / "prometheus" / "prometheus.yml"
    checked = subprocess.run(["promtool", "check", "config", configuration], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_alerts_fire_when_they_should() -> None:
    need("promtool")
    cases = Path(__file__).with_name("alerts_test.yml")
    checked = subprocess.run(["promtool", "test", "rules", cases], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    fired = set(re.findall(r'alertname="(\w+)"}\'', cases.read_text()))
    assert fired == {name for name, _ in _alerts()}
