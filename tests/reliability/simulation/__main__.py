"""The command: `python -m tests.reliability.simulation --seed N` or `--seeds HOW_MANY`."""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

if os.environ.get("PYTHONHASHSEED") != "0":
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, "-m", "tests.reliability.simulation", *sys.argv[1:]])

from tests.reliability.simulation import replaced

VFS = replaced.install()

from tests.reliability.simulation.faults import FAULTS  # noqa: E402
from tests.reliability.simulation.trial import Trial, make_template  # noqa: E402


def run_in_child(seed: int, template: Path) -> bool:
    """Run a seed in a process of its own; return whether nothing was wrong."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    root = Path(tempfile.mkdtemp(dir="/dev/shm"))
    gc.disable()  # coroutines that never go on must not be closed in another one's turn
    code = 1
    try:
        trial = Trial(seed, root, template)
        findings = trial.run()
        for finding in findings[:3]:
            print(f"seed {seed}: {finding}", flush=True)
        done = f"{trial.scheduler.steps} steps, {trial.acknowledged} changes acknowledged, {trial.kills} killed alone"
        print(f"seed {seed}: {done}, {trial.moved} bytes moved, {trial.digest()}", flush=True)
        code = bool(findings)
    except BaseException:
        traceback.print_exc()
    finally:
        shutil.rmtree(root, ignore_errors=True)
        os._exit(code)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, help="run this seed alone: what a finding prints")
    parser.add_argument("--seeds", type=int, default=50, help="how many seeds, from 1 on")
    parser.add_argument("--fault", choices=FAULTS, help="break the programs in this way first")
    options = parser.parse_args()
    if options.fault:
        FAULTS[options.fault]()
    place = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        make_template(place / "template")
        seeds = [options.seed] if options.seed is not None else list(range(1, options.seeds + 1))
        wrong = []
        for seed in seeds:
            if not run_in_child(seed, place / "template"):
                wrong.append(seed)
                if options.fault:
                    break
    finally:
        shutil.rmtree(place)
    print(f"{len(seeds)} seeds, wrong: {wrong}")
    return bool(wrong)


sys.exit(main())
