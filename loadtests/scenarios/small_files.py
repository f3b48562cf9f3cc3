"""A source tree of small files: written, then read by 16 with an 80/20 pattern, cold and warm (as published for EFS).

    locust -f loadtests/scenarios/small_files.py --host http://127.0.0.1:9000 -u 1 --share 0.1

The tree is made from the published distribution (54,000 files, 726 MB), or has the names and sizes of `--tar FILE`.
"""

import tarfile
from typing import Any

from sluice_s3.loadtests.clients.s3 import StorageClient
from sluice_s3.loadtests.cpu.small_files import Reads, chosen_reads, drop_caches
from sluice_s3.loadtests.mounts.workloads import Tree, linux_tree
from sluice_s3.loadtests.options import Option, Options
from sluice_s3.loadtests.users import ScriptUser

OPTIONS = Options(
    Option("share", 0.01, "Share of the published tree, 1 for all of it."),
    Option("tar", "", "Names and sizes of the files in this archive instead."),
    Option("writers", 1, "Clients that write; 1 as tar is."),
    Option("readers", 16, "Clients that read."),
    Option("reads", 0, "0: 10,000 times the share."),
)


def tree_of(archive: str) -> Tree:
    """Return names and sizes of a tar's files. Raises OSError, tarfile.TarError."""
    with tarfile.open(archive) as opened:
        members = opened.getmembers()
    directories = tuple(one.name for one in members if one.isdir())
    return Tree(directories, tuple((one.name, one.size) for one in members if one.isfile()))


class SmallFiles(ScriptUser):
    """Runs the stages `write`, `read-cold` and `read-warm`."""

    def script(self) -> None:
        """See `ScriptUser`."""
        options = OPTIONS.of(self.session.options)
        try:
            tree = tree_of(options.tar) if options.tar else linux_tree(options.share)
        except (OSError, tarfile.TarError) as error:
            self.session.give_up(f"{options.tar}: {error}")
            return
        self.session.any_size = True
        own = Tree(tree.directories, tuple(self.own_share(tree.files)))
        processes = self.session.share[1]
        writers, readers = max(1, options.writers // processes), max(1, options.readers // processes)
        self._stage("write", "PUT", writers, own.files)
        reads = (options.reads or max(100, int(10_000 * options.share))) // processes
        self.session.note(dropped_caches=drop_caches(), files=len(tree.files), bytes=tree.total)
        for stage in ("read-cold", "read-warm"):
            self._stage(stage, "GET", readers, chosen_reads(own, Reads(reads, reads)))

    def _stage(self, stage: str, operation: str, clients: int, files: Any) -> None:
        def run_file(objects: StorageClient, file: tuple[str, int]) -> None:
            self.do(operation, f"tree/{file[0]}", file[1], stage=stage, users=clients, objects=objects)

        self.run_each(clients, files, run_file)
