"""The plugin of pytest, in runs of pytest of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluice_s3.testing import Server


@pytest.fixture(autouse=True)
def own_settings(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A developer's environment, and nothing of this project's."""
    for name in [name for name in os.environ if name.startswith(("SLUICE_", "PYTEST_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "DEVELOPER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "developer")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")


def against(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The option by which a run uses this server."""
    monkeypatch.setenv("SLUICE_ROOT_ACCESS_KEY", server.access_key)
    monkeypatch.setenv("SLUICE_ROOT_SECRET_KEY", server.secret_key)
    return f"--sluice-url={server.endpoint}/"


def test_fixtures_and_faults(pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One server for the run; what a test leaves is gone in the next, and a failed one shows its requests."""
    monkeypatch.setenv("SLUICE_REGION", "of-another-server")
    pytester.makepyfile(
        """
        import os
        import boto3, botocore, pytest

        seen = []

        def test_a_bucket(s3, s3_bucket, sluice):
            s3.put_object(Bucket=s3_bucket, Key="a", Body=b"1")
            assert s3_bucket.startswith("test-a-bucket-")
            seen.extend((s3_bucket, sluice.endpoint))

        def test_another(s3, s3_bucket, sluice):
            assert seen == [seen[0], sluice.endpoint]
            assert [one["Name"] for one in s3.list_buckets()["Buckets"]] == [s3_bucket]

        def test_without_environment(sluice):
            assert os.environ["AWS_ACCESS_KEY_ID"] == "DEVELOPER"
            with pytest.raises(botocore.exceptions.ClientError, match="InvalidAccessKeyId"):
                boto3.client("s3", endpoint_url=sluice.endpoint, region_name="us-east-1").list_buckets()

        def test_environment(sluice_env, s3_bucket):
            boto3.client("s3").put_object(Bucket=s3_bucket, Key="a", Body=b"1")

        def test_full(sluice_fault, s3, s3_bucket):
            sluice_fault("disk full")
            with pytest.raises(botocore.exceptions.ClientError, match="InsufficientStorage"):
                s3.put_object(Bucket=s3_bucket, Key="a", Body=b"1")

        def test_fails(s3, s3_bucket):
            s3.put_object(Bucket=s3_bucket, Key="seen-in-the-report", Body=b"1")
            assert not s3.list_objects_v2(Bucket=s3_bucket)["Contents"]
        """
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["*Requests that sluice answered*", '*"key":"seen-in-the-report","status":200*'])
    assert '"key":"a"' not in result.stdout.str()
    assert list(tmp_path.iterdir()) == []


def test_a_running_server(pytester: pytest.Pytester, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--sluice-url` starts none; `--sluice-keep` keeps buckets."""
    pytester.makepyfile(
        f"""
        def test_it(s3, s3_bucket, sluice):
            assert sluice.endpoint == {server.endpoint!r}
            s3.put_object(Bucket=s3_bucket, Key="a", Body=b"1")

        def test_fault(sluice_fault):
            raise AssertionError
        """
    )
    s3, option = server.client(), against(server, monkeypatch)
    pytester.runpytest_inprocess(option).assert_outcomes(passed=1, skipped=1)
    assert not [one for one in s3.list_buckets()["Buckets"] if one["Name"].startswith("test-it-")]
    pytester.runpytest_inprocess(option, "--sluice-keep").assert_outcomes(passed=1, skipped=1)
    kept = [one["Name"] for one in s3.list_buckets()["Buckets"] if one["Name"].startswith("test-it-")]
    assert len(kept) == 1
    monkeypatch.delenv("SLUICE_ROOT_SECRET_KEY")
    result = pytester.runpytest_inprocess(option)
    result.stdout.fnmatch_lines(["*--sluice-url needs the server's keys: set SLUICE_ROOT_SECRET_KEY*"])


def test_processes_of_xdist_and_kept_data(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process has a server of its own, and the run says where it kept what."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    pytester.makepyfile(
        """
        import pathlib, time, pytest

        @pytest.mark.parametrize("number", range(2))
        def test_it(number, sluice):
            pathlib.Path("seen").mkdir(exist_ok=True)
            pathlib.Path(f"seen/{number}").write_text(sluice.endpoint)
            while len(list(pathlib.Path("seen").iterdir())) < 2:
                time.sleep(0.01)
        """
    )
    result = pytester.runpytest_subprocess("-n", "2", "--sluice-keep", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2)
    assert len({path.read_text() for path in (pytester.path / "seen").iterdir()}) == 2
    kept = {line.rpartition(" ")[2] for line in result.outlines if line.startswith("kept: sluice serve --config ")}
    assert kept == {str(path / "sluice.toml") for path in tmp_path.glob("sluice-*")}
    assert len(kept) == 2


def test_servers_with_settings(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makepyfile(
        """
        def test_it(sluice_factory):
            server = sluice_factory(region="eu-west-1", default_buckets="mine")
            assert server.env["AWS_REGION"] == "eu-west-1"
            location = server.client().get_bucket_location(Bucket="mine")
            assert location["LocationConstraint"] == "eu-west-1"
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    assert list(tmp_path.iterdir()) == []
