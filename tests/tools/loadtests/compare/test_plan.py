"""What is asked for: scenarios with their options, stores and endpoints, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sluice_s3.app.cli.bench import REPEATS, _endpoint_keys
from sluice_s3.app.cli.main import cli
from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.compare.plan import SCENARIOS, Plan, PlanError, select_scenarios
from sluice_s3.loadtests.compare.stores import parse_store
from sluice_s3.loadtests.compare.targets import start_target, targets_of
from sluice_s3.loadtests.mounts.profiles import PROFILES
from tests.tools.loadtests.answering import answering, saying


def plan(*stores: str, endpoints: tuple[str, ...] = (), direct: bool = False) -> Plan:
    return Plan(
        1, select_scenarios(["mixed"]), stores=stores, endpoints=endpoints, direct=direct, direct_unsynced=direct
    )


def test_every_scenario_has_its_file_and_both_sizes() -> None:
    for name, scenario in SCENARIOS.items():
        assert scenario.file.is_file()
        for full in (False, True):
            chosen = select_scenarios([name], full=full)[name]
            assert chosen.seconds > 0
            assert chosen.bytes > 0


@pytest.mark.parametrize("name", ["mixed", "saturation"])
def test_small_objects_need_little_space(name: str) -> None:
    """The bytes of a scenario that is bounded by time follow from its objects where these are small."""
    small, large = (
        select_scenarios([name], duration=60, settings=[f"{name}.size={size}"])[name].bytes for size in ("1KB", "10MB")
    )
    assert 10e6 < small < 1e9 < large


def test_the_usual_scenarios_end_in_five_minutes() -> None:
    assert sum(chosen.seconds for chosen in select_scenarios(()).values()) * 2 * REPEATS < 300


def test_options_go_to_the_scenarios_that_have_them() -> None:
    chosen = select_scenarios(
        ["mixed", "sizes", "threads"], users=7, duration=9, sizes="1KB", settings=["mixed.size=4KiB", "sizes.times=3"]
    )
    assert (chosen["mixed"].users, chosen["sizes"].users) == (7, 1)
    assert chosen["mixed"].arguments["duration"] == "9"
    assert chosen["mixed"].arguments["size"] == "4KiB"
    assert "duration" not in chosen["sizes"].arguments
    assert [chosen[name].arguments["sizes"] for name in ("sizes", "threads")] == ["1KB", "1KB"]
    assert chosen["sizes"].arguments["times"] == "3"


def test_a_plan_comes_back_from_its_file() -> None:
    one = plan("local", "x=efs-004", direct=True)
    again = Plan.of_json(json.loads(json.dumps(one.as_json())))
    assert again.scenarios == one.scenarios
    assert list(again.stores) == list(one.stores)
    with pytest.raises(PlanError):
        Plan.of_json({"repeats": 1})
    with pytest.raises(PlanError):
        Plan.of_json(one.as_json() | {"unknown": 1})


@pytest.mark.parametrize(
    ("names", "settings", "says"),
    [
        (["nothing"], [], "no scenario 'nothing'"),
        (["mixed"], ["mixed"], "is not SCENARIO.OPTION=VALUE"),
        (["mixed"], ["sizes.times=3"], "no scenario of this run"),
        (["mixed"], ["mixed.size=big"], "'big' is no size"),
        (["mixed"], ["mixed.mix=GET=half"], "is no share"),
        (["sizes"], ["sizes.times=few"], "few"),
        (["threads"], ["threads.sizes=1KB,,"], "is no size"),
        (["threads"], ["threads.step-seconds=few"], "few"),
        (["mixed"], ["mixed.duration=inf"], "infinity"),
    ],
)
def test_wrong_scenarios(names: list[str], settings: list[str], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        select_scenarios(names, settings=settings)


def test_stores(tmp_path: Path) -> None:
    found = parse_store(f"disk={tmp_path}")
    assert (found.name, found.kind, found.path, found.driver) == ("disk", "path", tmp_path, "")
    assert parse_store(f"disk={tmp_path}:efs").driver == "efs"
    (tmp_path / "a:b").mkdir()
    assert parse_store(f"disk={tmp_path}/a:b").path == tmp_path / "a:b"
    assert parse_store("efs-004").driver == "efs"
    assert parse_store("first=efs-004").profile == "efs-004"
    assert (parse_store("zdbfs").personality, parse_store("zdbfs").driver) == ("zdbfs", "fuse")
    assert all(parse_store(name).profile == name for name in PROFILES)
    slower = parse_store("twin=efs-004,slower=1.2")
    assert (slower.name, slower.profile, slower.slower) == ("twin", "efs-004", 1.2)


WRONG = ("", "=", "Name=/tmp", "x=", "x=/no/such/directory", "x=nothing", "a b=/tmp", "x=/etc/passwd")
NOT_SLOWER = ("x=fuse,slower=0.9", "x=local,slower=2", "x=fuse,faster=2")


@pytest.mark.parametrize("text", [*WRONG, *NOT_SLOWER])
def test_wrong_stores(text: str) -> None:
    with pytest.raises(PlanError):
        parse_store(text)


def test_targets() -> None:
    found = targets_of(plan("local", endpoints=("other=http://127.0.0.1:1/",), direct=True))
    assert [(one.name, one.kind) for one in found] == [
        ("local", "gateway"),
        ("local-direct", "direct"),
        ("local-direct-unsynced", "direct"),
        ("other", "endpoint"),
    ]
    for wrong in (
        plan(),
        plan("local", "local"),
        plan("local", endpoints=("local=http://127.0.0.1:1",)),
        plan(endpoints=("http://127.0.0.1:1",)),
        plan(endpoints=("x=ftp://127.0.0.1",)),
    ):
        with pytest.raises(PlanError):
            targets_of(wrong)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--store", "x=/no/such/directory"], "is no directory"),
        (["--store", "local", "--store", "local"], "two targets are called local"),
        (["--scenario", "nothing"], "no scenario"),
        (["--durability", "some"], "neither full nor relaxed"),
        (["--endpoint", "x=127.0.0.1"], "is not http"),
        (["--name", "../x"], "the name of a run"),
        (["--directory", "/no/such"], "is no directory"),
        (["--resume", "/no/such"], "is no run"),
    ],
)
def test_the_command_says_what_is_wrong(tmp_path: Path, options: list[str], says: str) -> None:
    done = CliRunner().invoke(cli, ["bench", "--results", str(tmp_path / "results"), *options])
    assert done.exit_code == 2
    assert says in done.output
    assert not (tmp_path / "results").exists()


def test_an_endpoint_is_asked_with_the_token_of_temporary_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ACCESS_KEY_ID", "access"), ("SECRET_ACCESS_KEY", "secret"), ("SESSION_TOKEN", "temporary")):
        monkeypatch.setenv(f"AWS_{name}", value)
    keys = _endpoint_keys()
    assert keys.environment["AWS_SESSION_TOKEN"] == "temporary", "Locust reads it"
    refused = saying(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
    with answering(refused, refused, refused) as (url, seen):
        (target,) = targets_of(plan(endpoints=(f"s3={url}",)))
        with (
            pytest.raises(S3CallError, match="403"),
            start_target(target, plan(endpoints=(f"s3={url}",)), keys, Path(), Path()),
        ):
            pass
    assert seen
    assert all(b"\r\nx-amz-security-token: temporary\r\n" in request for request in seen)
