"""Kill campaigns, their workers, kernels and schedulers at random moments, and see that nothing is lost or differs.

Each round does the same runs anew: in processes of this machine, by workers of Dask, and on real Linux where a kernel
was built. Something of it is killed (SIGKILL) again and again, and what ended is gone on with (`--resume`). Whatever is
whole at any time has to have the digest that the run has in a campaign which nothing disturbed; at the end all have it.

    SOAK_MINUTES=10 SOAK_KILLS=200 SOAK_SEED=1 python tests/soak/soak.py

Ends with 1 if a digest differs, a round cannot be completed, or fewer kills than asked for fitted into the time.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from bakeoff import results
from bakeoff.engines.kernel import registry
from bakeoff.engines.lab import agent
from bakeoff.errors import BakeoffError

MINUTES = float(os.environ.get("SOAK_MINUTES", "10"))
KILLS = int(os.environ.get("SOAK_KILLS", "200"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
PER_ROUND = 20
"""After so many kills a round is left to itself, and has to become whole."""
EARLY = 0.1
"""How often a campaign or a scheduler may be killed that has only begun."""
TOO_LONG_S = 600.0
"""A campaign that nobody killed for so long hangs."""
LOOK_S = 5.0
"""So often is it seen whether Dask's workers are still there."""
SCENARIO = """
scenario: soak
title: "{cc}, {qdisc}"
duration: 4s
network:
  path: [cli, mid, srv]
  rtt: 20ms
  bottleneck: {rate: 20mbit, qdisc: "{qdisc}"}
flows:
  - {name: one, cc: "{cc}"}
  - {name: two, cc: cubic}
vary:
  cc: [reno, cubic, bbr]
  qdisc: {fq_codel: fq_codel, pie: pie, pfifo: pfifo}
"""
BAKEOFF = [sys.executable, "-m", "bakeoff"]
# How often each kind is chosen where several are there.
WEIGHTS = {"worker": 6, "kernel": 6, "campaign": 2, "scheduler": 1}


def children(of: int) -> list[int]:
    """The processes below one, by number."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1]) if entry.name.isdigit() else 0
        except OSError:  # it has ended
            continue
        below.setdefault(parent, []).append(int(entry.name) if entry.name.isdigit() else 0)
    found, waiting = [], [of]
    while waiting:
        more = below.get(waiting.pop(), [])
        found += more
        waiting += more
    return sorted(found)


def kind(process: int) -> str | None:
    """What a process below a campaign, or below Dask's nanny, is."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return None
    if "uml_dir=" in words:
        return "kernel"
    return "worker" if "spawn_main" in words else None


def started(words: list[str], folder: Path) -> subprocess.Popen:
    log = (folder / "soak.log").open("a")
    return subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


class Dask:
    """A scheduler and two workers, as processes of their own; started again when one of the two commands has ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.processes: dict[str, subprocess.Popen] = {}

    def address(self) -> str:
        if any(process.poll() is not None for process in self.processes.values()) or not self.processes:
            self.stop()
            self.file.unlink(missing_ok=True)
            where = ["--scheduler-file", str(self.file), "--no-dashboard"]
            scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", *where]
            self.processes["scheduler"] = started(scheduler, self.folder)
            while not self.file.exists() or not self.file.read_text().endswith("}"):
                time.sleep(0.1)
            self.start_workers()
        return str(json.loads(self.file.read_text())["address"])

    def start_workers(self) -> None:
        where = ["--scheduler-file", str(self.file), "--no-dashboard"]
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--nworkers", "2", "--nthreads", "1", *where]
        self.processes["workers"] = started(worker, self.folder)

    def revive(self) -> None:
        """Start the workers again if they have ended, as a batch system does.

        Dask's own command starts a worker again that is killed, and ends if one is killed while it starts.
        """
        if self.processes["scheduler"].poll() is None and self.processes["workers"].poll() is not None:
            self.start_workers()

    def stop(self) -> None:
        for process in self.processes.values():
            for each in [*children(process.pid), process.pid]:
                kill(each)
            process.wait()
        self.processes.clear()


def kill(process: int) -> bool:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Soak:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.draws = random.Random(SEED)
        self.until_s = time.monotonic() + 60.0 * MINUTES
        self.kills: Counter[str] = Counter()
        self.campaigns = self.rounds = self.compared = self.last = 0
        self.wrong: list[str] = []

    def round(self, engine: str, expected: dict[str, str], took_s: float, dask: Dask | None) -> None:
        """Do all runs, with kills in between, until they are whole."""
        root = self.folder / f"round-{self.rounds}"
        self.rounds += 1
        self.last = self.kills.total() + PER_ROUND
        struck_s = time.monotonic()
        while not self.complete(root, engine, took_s, dask):
            self.compare(root, expected, whole=False)
            struck_s = time.monotonic() if self.on() else struck_s
            if time.monotonic() - struck_s > TOO_LONG_S:
                self.wrong.append(f"{root.name}: is not complete {TOO_LONG_S:g} s after the last kill")
                break
        self.compare(root, expected, whole=True)
        shutil.rmtree(root, ignore_errors=True)

    def complete(self, root: Path, engine: str, took_s: float, dask: Dask | None) -> bool:
        """Begin the campaign, or go on with it, and kill something of it now and then; whether it ended whole."""
        where = [] if dask is None else ["--dask", dask.address()]
        go_on = ["--resume"] if (root / "campaign.json").exists() else []
        shutil.rmtree(root, ignore_errors=True) if not go_on else None
        words = [*command(engine), "--out", str(root), *where, *go_on]
        self.campaigns += 1
        campaign = started(words, self.folder)
        begun_s = time.monotonic()
        left_s = TOO_LONG_S
        while True:
            killing = self.on()
            wait_s = self.draws.uniform(0, 2 * took_s / PER_ROUND) if killing else LOOK_S
            if dask is not None:
                dask.revive()
            try:
                return campaign.wait(wait_s) == 0
            except subprocess.TimeoutExpired:
                left_s = TOO_LONG_S if killing else left_s - wait_s
                if not killing:
                    if left_s > 0:
                        continue
                    self.wrong.append(f"{root.name}: hangs")
                    kill(campaign.pid)
                    campaign.wait()
                    return False
                self.strike(campaign, dask, early=time.monotonic() - begun_s < took_s / 2)

    def on(self) -> bool:
        """Whether there is to be another kill in this round."""
        return self.more() and self.kills.total() < self.last

    def more(self) -> bool:
        """Whether there is to be another kill at all."""
        return time.monotonic() < self.until_s and self.kills.total() < KILLS

    def strike(self, campaign: subprocess.Popen, dask: Dask | None, *, early: bool) -> None:
        """Kill one of the processes that are there."""
        there: dict[str, list[int]] = {"campaign": [campaign.pid]}
        roots = [campaign.pid]
        if dask is not None:
            there["scheduler"] = [dask.processes["scheduler"].pid]
            roots.append(dask.processes["workers"].pid)
        for process in [each for root in roots for each in children(root)]:
            if (what := kind(process)) is not None:
                there.setdefault(what, []).append(process)
        kinds = sorted(there)
        # Who is always killed as it starts never comes to anything.
        if early and self.draws.random() > EARLY:
            kinds = [each for each in kinds if each in ("worker", "kernel")]
        if not kinds:
            return
        [chosen] = self.draws.choices(kinds, [WEIGHTS[each] for each in kinds])
        if kill(self.draws.choice(there[chosen])):
            self.kills[chosen] += 1

    def compare(self, root: Path, expected: dict[str, str], *, whole: bool) -> None:
        """Note what differs from the campaign that nothing disturbed."""
        found = digests(root)
        self.compared += len(found)
        for key in found.keys() | (expected.keys() if whole else set()):
            if found.get(key) != expected[key]:
                self.wrong.append(f"{root.name}: {key}: {found.get(key, 'is missing')}, expected {expected[key]}")
        left = [path for path, _ in results.survey(root).half_written] if whole and root.is_dir() else []
        self.wrong += [f"{path}: is left half-written" for path in left]


def command(engine: str) -> list[str]:
    seeds = ["--seeds", "4"] if engine == "sim" else []
    return [*BAKEOFF, "run", "soak.yaml", "--engine", engine, "-j", "3", "--store", "none", *seeds]


def has_kernel() -> bool:
    try:
        agent.find()
    except BakeoffError as error:
        print(f"without the engine kernel: {error}")
        return False
    return bool(registry.list_kernels())


def digests(root: Path) -> dict[str, str]:
    """Of the runs that are whole and ended well."""
    if not root.is_dir():
        return {}
    return {each.key: each.record.digest for each in results.survey(root).results if each.ok}


def main() -> int:
    begun_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bakeoff-soak-") as name:
        folder = Path(name)
        (folder / "soak.yaml").write_text(SCENARIO)
        expected: dict[str, tuple[dict[str, str], float]] = {}
        for engine in ["sim", *(["kernel"] if has_kernel() else [])]:
            before_s = time.monotonic()
            subprocess.run([*command(engine), "--out", engine, "-q"], cwd=folder, check=True)
            expected[engine] = digests(folder / engine), time.monotonic() - before_s
            print(f"{engine}: {len(expected[engine][0])} runs undisturbed in {expected[engine][1]:.0f} s", flush=True)
        soak = Soak(folder)
        dask = Dask(folder)
        plan = [("sim", None), ("sim", dask), *([("kernel", None)] if "kernel" in expected else [])]
        try:
            while soak.more():
                engine, workers = plan[soak.rounds % len(plan)]
                soak.round(engine, *expected[engine], workers)
                struck = ", ".join(f"{count} {what}" for what, count in sorted(soak.kills.items()))
                print(
                    f"round {soak.rounds} ({engine}{', dask' if workers else ''}): killed so far: {struck}", flush=True
                )
        finally:
            dask.stop()
        minutes = (time.monotonic() - begun_s) / 60
        print(
            f"seed {SEED}: {soak.kills.total()} kills ({struck}) in {minutes:.1f} min; {soak.rounds} rounds, "
            f"{soak.campaigns} campaigns begun or gone on with, {soak.compared} digests compared, "
            f"{len(soak.wrong)} differ"
        )
        for line in soak.wrong[:20]:
            print(line)
        if soak.kills.total() < KILLS:
            print(f"only {soak.kills.total()} of {KILLS} kills fitted into {MINUTES:g} min; SOAK_MINUTES gives more")
        return 1 if soak.wrong or soak.kills.total() < KILLS else 0


if __name__ == "__main__":
    sys.exit(main())
