# SPDX-License-Identifier: MIT OR Apache-2.0
"""apt with sources, lists and downloads of its own in a cache folder: no root, and the machine's apt stays as it is.

The mirror is the one that the machine's apt is configured with; only the suite is another one.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path


def cache_folder() -> Path:
    """The folder that bakeoff itself uses: `$XDG_CACHE_HOME/bakeoff` or `~/.cache/bakeoff`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "bakeoff"


def stop(message: str) -> None:
    """End the program with a message and exit code 2."""
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    sys.exit(2)


def run(command: list[str], *, cwd: Path | None = None) -> str:
    """Standard output of a command; a failure ends the program with its last words."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        stop(f"{' '.join(command)} failed:\n{(done.stderr or done.stdout).strip()}")
    return done.stdout


class Apt:
    """apt-get and apt-cache for `suites` (default: the suite that the machine is configured with)."""

    def __init__(self, folder: Path, suites: list[str]) -> None:
        if shutil.which("apt-get") is None:
            stop("apt-get is not installed; this script is for Debian and what is made from it")
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("lists/partial", "archives/partial", "parts"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.folder = folder
        # An empty status file: what this machine has installed plays no part.
        (folder / "status").touch()
        (folder / "parts" / "aside.sources").write_text(_stanza(suites))
        self.options = [
            "-qq",
            "-o", "Dir::Etc::SourceList=/dev/null",
            "-o", f"Dir::Etc::SourceParts={folder}/parts",
            "-o", f"Dir::State::Lists={folder}/lists",
            "-o", f"Dir::State::Status={folder}/status",
            "-o", f"Dir::Cache={folder}",
            "-o", "Debug::NoLocking=1",
            # The download user of apt cannot write into a home folder.
            "-o", "APT::Sandbox::User=",
        ]  # fmt: skip
        run(["apt-get", *self.options, "update"])

    def versions(self, package: str) -> dict[str, str]:
        """Name -> newest version of the packages whose whole name matches the regular expression."""
        names = run(["apt-cache", *self.options, "pkgnames", package.split("\\", maxsplit=1)[0].rstrip("^")]).split()
        found = {}
        for name in sorted(name for name in names if re.fullmatch(package, name)):
            lines = run(["apt-cache", *self.options, "madison", name]).splitlines()
            if lines:
                found[name] = lines[0].split("|")[1].strip()
        return found

    def download(self, package: str, version: str) -> Path:
        """The .deb of one package, in the archives folder; not fetched again if it is there."""
        pattern = f"{package}_{version.replace(':', '%3a')}_*.deb"
        archives = self.folder / "archives"
        if not list(archives.glob(pattern)):
            run(["apt-get", *self.options, "download", f"{package}={version}"], cwd=archives)
        found = list(archives.glob(pattern))
        if not found:
            stop(f"apt-get downloaded no {pattern}")
        return found[0]

    def download_with_dependencies(self, *packages: str) -> list[Path]:
        """The .deb of the packages and of everything that they depend on, as if nothing were installed."""
        archives = self.folder / "archives"
        for old in archives.glob("*.deb"):
            old.unlink()
        run(["apt-get", *self.options, "install", "--yes", "--download-only", "--no-install-recommends", *packages])
        return sorted(archives.glob("*.deb"))


def _stanza(suites: list[str]) -> str:
    """A deb822 source like the first one configured on this machine, with other suites."""
    words = ["indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT) $(SOURCESENTRY)", "Created-By: Packages"]
    targets = [line.split() for line in run(["apt-get", *words]).splitlines()]
    targets = [target for target in targets if len(target) == 4 and "security" not in target[1]]
    if not targets:
        stop("apt knows no package lists yet; run 'apt-get update' first")
    uri, release, component, entry = targets[0]
    text = Path(entry.rsplit(":", 1)[0]).read_text(errors="replace")
    signed = re.search(r"(?m)^Signed-By:.*\n(?:[ \t].*\n?)*", text + "\n")
    line = re.search(r"signed-by=([^\s\]]+)", text)
    key = signed[0] if signed else f"Signed-By: {line[1]}\n" if line else ""
    return f"Types: deb\nURIs: {uri}\nSuites: {' '.join(suites or [release])}\nComponents: {component}\n{key}"
