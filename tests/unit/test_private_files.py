"""Files and directories with fixed names, where another user may have been first."""

from __future__ import annotations

import errno
import os
import pwd
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice_s3.app import private_files
from sluice_s3.app.index.engine.generation import Generation
from sluice_s3.app.index.engine.liveness_lock import LivenessLock, is_unlocked
from sluice_s3.app.index.sqlite.migrate import upgrade
from sluice_s3.app.jobs.leader_election import FlockElection
from sluice_s3.app.private_files import (
    UnsafeFile,
    check_owners,
    create_secret,
    default_runtime_base,
    describe_failure,
    make_directories,
    make_directory,
    open_file,
    read_secret,
    replace_file,
)
from sluice_s3.app.server.processes.instance_lock import acquire
from sluice_s3.app.server.processes.launcher import run
from sluice_s3.app.server.shared_memory.oldest_requests import map_shared_file
from sluice_s3.app.settings import Settings

VICTIM = b"VICTIM--"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


def other() -> int:
    return pwd.getpwnam("nobody").pw_uid


def give(path: Path, mode: int | None = None) -> Path:
    """Make it another user's."""
    os.chown(path, other(), -1, follow_symlinks=False)
    if mode is not None:
        path.chmod(mode)
    return path


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory as /tmp is."""
    path = tmp_path / "tmp"
    path.mkdir()
    path.chmod(0o1777)
    return path


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_bytes(VICTIM)
    return path


def test_a_directory_is_made_for_its_user_alone(shared: Path) -> None:
    make_directory(shared / "run" / "writers")
    make_directory(shared / "other")
    for path in (shared / "run" / "writers", shared / "other"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        make_directory(path)  # and is taken again


@needs_root
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777])
def test_a_directory_of_another_user_in_a_shared_place_is_refused(shared: Path, mode: int) -> None:
    planted = shared / "run"
    planted.mkdir()
    give(planted, mode)
    for path in (planted, planted / "below"):
        if path != planted:
            path.mkdir(mode=0o700)
        with pytest.raises(UnsafeFile, match="another user may have made") as raised:
            make_directory(path)
        assert str(path) in str(raised.value)
        with pytest.raises(UnsafeFile):
            open_file(path / "generation")
        assert not (path / "generation").exists()


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777])
def test_a_directory_in_a_shared_place_is_closed(shared: Path, mode: int) -> None:
    (shared / "run").mkdir()
    (shared / "run").chmod(mode)
    with pytest.raises(UnsafeFile, match=f"its mode is {mode:o}"):
        make_directory(shared / "run")


@pytest.mark.parametrize("target", ["there", "missing", "file"])
def test_a_link_or_file_is_no_runtime_directory(shared: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "there").mkdir(mode=0o700)
    if target == "file":
        (shared / "run").touch()
    else:
        (shared / "run").symlink_to(tmp_path / target)
    with pytest.raises(UnsafeFile, match="a link or no directory"):
        make_directory(shared / "run")
    assert not (tmp_path / "missing").exists()


def test_directories_that_no_other_user_can_have_made(tmp_path: Path) -> None:
    """As systemd and fsGroup make them, and where the operator linked one to another disk."""
    for number, mode in enumerate((0o755, 0o2770)):
        path = tmp_path / str(number)
        path.mkdir()
        path.chmod(mode)
        make_directory(path)
    (tmp_path / "link").symlink_to(tmp_path / "0")
    make_directories(tmp_path / "home", tmp_path / "link")
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700
    path.chmod(0o777)
    with pytest.raises(UnsafeFile, match="its mode is 777"):
        make_directory(path)


@needs_root
def test_root_works_in_the_directory_of_a_service(tmp_path: Path, victim: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    give(run_dir, 0o755)
    make_directory(run_dir)
    (run_dir / "generation").touch(mode=0o600)
    give(run_dir / "generation")
    os.close(open_file(run_dir / "generation"))
    (run_dir / "index.lock").symlink_to(victim)
    os.link(victim, run_dir / "jobs.lock")
    for name in ("index.lock", "jobs.lock"):  # the service has no power over what is root's
        with pytest.raises(UnsafeFile):
            open_file(run_dir / name)


@needs_root
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    give_to = tmp_path / "generation"
    give_to.touch(mode=0o600)
    give(give_to)
    with pytest.raises(UnsafeFile, match=f"belongs to user {other()}.*generation"):
        open_file(give_to)
    os.close(replace_file(give_to))
    assert give_to.stat().st_uid == os.geteuid()


def of_turns(path: Path) -> None:
    FlockElection(path)._try_lock()


OPENERS: dict[str, Callable[[Path], object]] = {
    "generation": lambda path: Generation(path),
    "server.lock": lambda path: acquire(path.parent),
    "jobs.lock": of_turns,
    "counters": lambda path: map_shared_file(path, len(VICTIM), create=False),
    "writer.lock": lambda path: is_unlocked(path.parent, path.name),
    "index.lock": lambda path: upgrade(path.with_name("sluice.db"), path),
}


@pytest.mark.parametrize("name", OPENERS)
@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "directory"])
def test_what_is_planted_in_place_of_a_file_is_not_opened(tmp_path: Path, victim: Path, name: str, kind: str) -> None:
    planted = tmp_path / "run" / name
    planted.parent.mkdir(mode=0o700)
    match kind:
        case "link":
            planted.symlink_to(victim)
        case "dangling":
            planted.symlink_to(tmp_path / "made")
        case "fifo":
            os.mkfifo(planted)
        case "directory":
            planted.mkdir()
    with pytest.raises(UnsafeFile, match="link or no regular file") as raised:
        OPENERS[name](planted)
    assert str(planted) in str(raised.value)
    assert victim.read_bytes() == VICTIM
    assert not (tmp_path / "made").exists()


def test_what_is_made_anew_takes_the_place_of_a_link(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "counters").symlink_to(victim)
    map_shared_file(tmp_path / "counters", 8, create=True)[:] = b"12345678"
    assert victim.read_bytes() == VICTIM
    assert (tmp_path / "counters").read_bytes() == b"12345678"
    life = LivenessLock(tmp_path / "writers")
    assert not is_unlocked(tmp_path / "writers", life.name)
    life.close(remove=True)
    assert is_unlocked(tmp_path / "writers", life.name)


def test_secrets_are_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    create_secret(path, "text\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError, match="credentials"):
        create_secret(path, "other")
    for mode in (0o600, 0o400):
        path.chmod(mode)
        assert read_secret(path) == "text\n"
    for mode in (0o640, 0o604, 0o620):
        path.chmod(mode)
        with pytest.raises(UnsafeFile, match=f"its mode is {mode:o}.*chmod 600"):
            read_secret(path)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(UnsafeFile, match="link"):
        read_secret(tmp_path / "link")
    path.chmod(0o600)
    path.write_bytes(b"\xff\n")
    with pytest.raises(OSError, match="no text"):
        read_secret(path)


@needs_root
def test_whose_secrets_are_read(shared: Path, tmp_path: Path) -> None:
    """Root's, this user's, and those of the directory's owner unless anybody could have made that directory."""
    service, opened, planted = tmp_path / "service", tmp_path / "opened", shared / "planted"
    for home in (service, opened, planted):
        home.mkdir()
        create_secret(home / "credentials", "text\n")
        give(home / "credentials")
        give(home, 0o777 if home == opened else 0o755)
    assert read_secret(service / "credentials") == "text\n"
    for home in (opened, planted):
        with pytest.raises(UnsafeFile, match=f"belongs to user {other()}"):
            read_secret(home / "credentials")
    os.chown(service, 0, 0)
    with pytest.raises(UnsafeFile):
        read_secret(service / "credentials")


@needs_root
def test_a_mount_that_shows_other_owners_and_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of FUSE, SMB, or NFS without root: what it shows of a new file, too, says nothing."""
    path = tmp_path / "credentials"
    create_secret(path, "text\n")
    give(path, 0o644)
    shown = private_files._Shown
    for new, readable in ((shown(other(), 0o644), True), (shown(0, 0o644), False), (shown(other(), 0o600), False)):
        monkeypatch.setattr(private_files, "_shown", lambda _, new=new: new)
        if readable:
            assert read_secret(path) == "text\n"
        else:
            with pytest.raises(UnsafeFile):
                read_secret(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["credentials"]


@needs_root
def test_database_files_of_another_user(shared: Path, tmp_path: Path) -> None:
    """SQLite opens them by their paths, through links."""
    (tmp_path / "mine.db").touch()
    (shared / "linked.db").symlink_to(tmp_path / "mine.db")
    check_owners([shared / "linked.db", shared / "missing.db"])
    (shared / "x.db-wal").touch()
    (shared / "y.db").symlink_to(tmp_path / "mine.db")
    for name in ("x.db-wal", "y.db"):
        with pytest.raises(UnsafeFile, match=name):
            check_owners([shared / "missing.db", give(shared / name)])
    give(tmp_path / "mine.db")
    with pytest.raises(UnsafeFile, match=r"mine\.db"):
        check_owners([shared / "linked.db"])


@needs_root
def test_the_runtime_directory_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert default_runtime_base() == tmp_path
    give(tmp_path)
    assert default_runtime_base() != tmp_path
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "missing"))
    assert default_runtime_base() == tmp_path / "missing"


def test_what_permissions_forbid_names_path_owner_user_and_cures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "data"
    home.mkdir()
    home.chmod(0o755)
    owner, group = home.stat().st_uid, home.stat().st_gid
    monkeypatch.setattr(os, "geteuid", lambda: 10001)
    monkeypatch.setattr(os, "getegid", lambda: 10001)

    def explained(path: Path, number: int = errno.EACCES) -> str:
        return describe_failure(OSError(number, os.strerror(number), str(path)), home)

    who = f"belongs to user {owner} (mode 755), and this runs as user 10001: "
    cures = f"make all of it this user's (chown -R 10001:10001 {home}), or run as its owner (in a container: --user "
    assert explained(home / "index" / "run") == f"Permission denied: {home} {who}{cures}{owner}:{group})"
    assert describe_failure(OSError(errno.EACCES, "Permission denied"), home) == explained(home)
    (home / "index").mkdir()
    assert f"{home / 'index'} belongs to" in explained(home / "index" / "run")
    assert f"(chown -R 10001:10001 {home})" in explained(home / "index" / "run")  # all of it
    (tmp_path / "key").touch()
    assert f"(chown 10001:10001 {tmp_path / 'key'})" in explained(tmp_path / "key")
    # what is above the gateway's directory is not to be given away
    (home / "index").rmdir()
    home.rmdir()
    assert "chown" not in explained(home)
    assert f"(install -d -o 10001 -g 10001 {home})" in explained(home)
    assert explained(home, errno.EROFS) == f"Read-only file system: {home}"


@needs_root
def test_a_start_on_a_directory_of_roots_is_refused_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with tempfile.TemporaryDirectory() as place:  # pytest's own are closed to others
        os.chmod(place, 0o755)
        settings = Settings(data=Path(place), port=0, admin_port=-1, workers=1)
        pid = os.fork()
        if pid == 0:
            os.setgroups([])
            os.setgid(10001)
            os.setuid(10001)
            os._exit(run(settings))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    said = capfd.readouterr().err
    assert said.startswith(
        f"sluice: Permission denied: {place} belongs to user 0 (mode 755), and this runs as user 10001:"
    )
    assert said.count("\n") == 1


@needs_root
def test_what_root_makes_belongs_to_the_service(tmp_path: Path) -> None:
    """A command of root's beside a service must leave no lock that the service cannot open."""
    run_dir = tmp_path / "run"
    run_dir.mkdir(mode=0o700)
    os.chown(run_dir, 10001, 10002)
    os.close(open_file(run_dir / "server.lock"))
    os.close(replace_file(run_dir / "addresses"))
    for name in ("server.lock", "addresses"):
        found = (run_dir / name).stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (10001, 10002, 0o600)
    kept = run_dir / "kept"
    kept.write_text("root's own")
    kept.chmod(0o600)
    os.close(open_file(kept))
    assert kept.stat().st_uid == 0
    linked = tmp_path / "linked"
    linked.touch(mode=0o600)
    (run_dir / "link").hardlink_to(linked)
    with pytest.raises(OSError, match="link"):
        open_file(run_dir / "link")
    assert linked.stat().st_uid == 0


def test_a_mount_that_maps_this_user_to_another_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An NFS server with root_squash forbids root what its own directory allows."""
    tmp_path.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid)
    said = describe_failure(PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "store")), tmp_path)
    assert "root_squash" in said
    assert "chown" not in said
    tmp_path.chmod(0o555)
    monkeypatch.setattr(os, "geteuid", lambda: 10001)
    assert "root_squash" not in describe_failure(PermissionError(errno.EACCES, "", str(tmp_path)), tmp_path)
