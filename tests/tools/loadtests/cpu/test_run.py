"""The command whole: two durabilities of this gateway, every operation, cells of a moment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner

from sluice_s3.loadtests.cpu.__main__ import cli, main
from sluice_s3.loadtests.cpu.shapes import OPERATIONS as SHAPE_OPERATIONS
from sluice_s3.loadtests.cpu.shapes import SHAPES
from tests.support import postgres
from tests.support.environment import ROOT, need_fuse

SMALL = (
    "--rounds 1 --ops put,get,stat,delete,list,multipart,mix --sizes 4k,200k --seconds 0.1 --warm-up 0.02"
    " --list-keys 20 --multipart 10m --part 5m --mix-size 300k --mix-clients 3 --clients 4"
)


def test_servers_find_the_modules_of_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"build/checkout{os.pathsep}/elsewhere")
    main()
    assert os.environ["PYTHONPATH"] == f"{tmp_path}/build/checkout{os.pathsep}/elsewhere"


@pytest.mark.skipif(not {0, 1} <= os.sched_getaffinity(0), reason="wants core 0 for the server and core 1 for itself")
def test_every_cell_is_measured(tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    command = [sys.executable, "-m", "sluice_s3.loadtests.cpu", "run", "--target", "sluice", "--target", "sluice:full"]
    command += [*SMALL.split(), "--output", str(output), "--directory", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(output.read_text())["rows"]
    assert len(rows) == 2 * (2 * 4 + 3)
    assert all(row["errors"] == 0 and row["rate"]["low"] > 0 and row["cpu_us"]["low"] > 0 for row in rows)
    assert "sluice-full" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.parametrize("tls", [[], ["--tls"]])
def test_every_shape_is_played(tmp_path: Path, tls: list[str]) -> None:
    output = tmp_path / "out.json"
    command = [sys.executable, "-m", "sluice_s3.loadtests.cpu", "shapes", "--target", "sluice", "--workers", "1", *tls]
    command += [
        "--ops",
        ",".join(SHAPE_OPERATIONS).lower(),
        "--part",
        "100k",
        "--concurrency",
        "3",
        "--seconds",
        "0.05",
    ]
    command += ["--warm-up", "0.02", "--rounds", "1", "--output", str(output), "--directory", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(output.read_text())
    cells = {row["cell"]["operation"] for row in document["rows"]}
    suffix = " TLS" if tls else ""
    assert cells == {f"{operation} {name}{suffix}" for name, shape in SHAPES.items() for operation in shape.calls}
    assert all(row["errors"] == 0 and row["rate"]["low"] > 0 and row["load_average"] for row in document["rows"])
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.parametrize(
    "words",
    [
        ["--target", "sluice", "--shape", "curl"],
        ["--target", "peer=peer {port}", "--tls"],
        ["--target", "peer=peer {port} {certificate}"],
    ],
)
def test_shapes_that_cannot_be_played(words: list[str]) -> None:
    done = CliRunner().invoke(cli, ["shapes", *words])
    assert done.exit_code == 2


class Refusing(BaseHTTPRequestHandler):
    """Has buckets, but takes no object."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.send_response(400 if self.path.count("/") > 1 else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_DELETE = do_GET


def test_a_gateway_that_refuses_a_shape(tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        words = ["--target", f"peer=http://127.0.0.1:{server.server_port}", "--shape", "minio-go", "--rounds", "1"]
        words += ["--seconds", "0.5", "--output", str(output)]
        done = CliRunner().invoke(cli, ["shapes", *words])
        server.shutdown()
        thread.join()
    assert done.exit_code == 0, done.output
    (measure,) = json.loads(output.read_text())["measures"]
    assert measure["operations"] == 0
    assert set(measure["errors"]) == {"400"}


def test_gateways_that_share_a_database(tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    with postgres.running() as server:
        command = [
            sys.executable,
            "-m",
            "sluice_s3.loadtests.cpu",
            "run",
            "--server-core",
            "-1",
            "--beside",
            str(server.pid),
        ]
        command += [
            "--target",
            "two={python} -m sluice_s3.loadtests.cpu.gateways {data} {port} {port2}",
            "--rounds",
            "1",
        ]
        command += ["--ops", "put,get", "--sizes", "4k", "--seconds", "0.3", "--clients", "4"]
        command += ["--output", str(output), "--directory", str(tmp_path)]
        environment = {**os.environ, "SLUICE_BENCH_POSTGRES": server.url("{database}")}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        left = server.sql("SELECT count(*) FROM pg_database WHERE datname LIKE 'bench%'")
    assert done.returncode == 0, done.stderr
    put, get = json.loads(output.read_text())["rows"]
    assert (put["errors"], get["errors"], left) == (0, 0, "0")
    assert put["beside_us"]["low"] > 0
    assert "beside" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_a_mount_that_hangs(tmp_path: Path) -> None:
    need_fuse()
    command = [
        sys.executable,
        "-m",
        "sluice_s3.loadtests.cpu",
        "hang",
        "--rounds",
        "1",
        "--seconds",
        "2",
        "--directory",
        tmp_path,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    odd = next(line for line in done.stdout.splitlines() if "store that hangs" in line)
    before, meanwhile, after = (json.loads(re.sub(r"(\d+):", r'"\1":', one)) for one in re.findall(r"{.*?}", odd))
    assert (set(before), set(after)) == ({"200"}, {"200"})
    assert "503" in meanwhile
    elsewhere = next(line for line in done.stdout.splitlines() if "failures elsewhere" in line)
    assert re.findall(r"\d+", elsewhere) == ["0", "0", "0"]
    assert list(tmp_path.iterdir()) == []
