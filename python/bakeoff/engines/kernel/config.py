"""The configuration of a virtual-time kernel: fragments, what a tree itself offers, what it granted.

A fragment is a file of `CONFIG_NAME=value` and `# CONFIG_NAME is not set` lines, as in the kernel's own
`kernel/configs`. The fragments of the project lie in the folder `kernel/config`: `required.config` and `wanted.config`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from bakeoff import files
from bakeoff.errors import KernelError

_LARGEST = 16 << 20
"""Bytes of a file; a kernel's whole configuration has some hundred thousand."""
_SET = re.compile(r"CONFIG_(\w+)=(.+)")
_UNSET = re.compile(r"# CONFIG_(\w+) is not set")

# Where a tree names its own queueing disciplines, classifiers, actions and congestion controls.
_OFFERS = {
    "net/sched/Kconfig": re.compile(r"(NET_SCH|NET_CLS|NET_ACT|NET_EMATCH)_"),
    "net/ipv4/Kconfig": re.compile(r"TCP_CONG_"),
}
# NET_SCH_DEFAULT would change the queue that every device gets; NET_EMATCH_STACK is a number.
_NOT_OFFERS = {"NET_SCH_DEFAULT", "NET_EMATCH_STACK"}


def parse(text: str, *, place: str = "configuration") -> dict[str, str]:
    """Symbol -> value of a `.config` or a fragment; `n` for a symbol that is not set.

    The last line about a symbol counts. A line that is neither an assignment, a comment nor empty is an error that
    names
    `place` and the line.
    """
    options: dict[str, str] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if match := _SET.fullmatch(line):
            options[match[1]] = match[2]
        elif match := _UNSET.fullmatch(line):
            options[match[1]] = "n"
        elif line and not line.startswith("#"):
            raise KernelError(
                f"{place}:{number}: {line!r} is not a configuration line; expected CONFIG_NAME=value or "
                f"# CONFIG_NAME is not set"
            )
    return options


def read(path: Path) -> dict[str, str]:
    """`parse` of a file. OSError unless it is a regular one, of at most 16 MiB."""
    return parse(files.read(path, _LARGEST).decode(errors="replace"), place=str(path))


def merge(*fragments: dict[str, str]) -> dict[str, str]:
    """One set of options; where two fragments speak of the same symbol, the first one counts.

    `required.config` goes first, so that nothing later can take away what a run cannot do without.
    """
    merged: dict[str, str] = {}
    for fragment in fragments:
        for symbol, value in fragment.items():
            merged.setdefault(symbol, value)
    return merged


def render(options: dict[str, str]) -> str:
    """The options as a fragment, one line each, in order of the symbols."""
    lines = (
        f"# CONFIG_{symbol} is not set" if value == "n" else f"CONFIG_{symbol}={value}"
        for symbol, value in sorted(options.items())
    )
    return "\n".join(lines) + "\n"


def offered(tree: Path) -> dict[str, str]:
    """Every queueing discipline, classifier, action and TCP congestion control that the tree names, as built in."""
    options: dict[str, str] = {}
    for name, wanted in _OFFERS.items():
        path = tree / name
        if not path.is_file():
            continue
        for symbol in re.findall(
            r"(?m)^\s*(?:menu)?config\s+(\w+)", files.read(path, _LARGEST).decode(errors="replace")
        ):
            if wanted.match(symbol) and symbol not in _NOT_OFFERS:
                options[symbol] = "y"
    return options


def refused(asked: dict[str, str], granted: dict[str, str]) -> list[str]:
    """The symbols whose granted value is not the one asked for, in order. An absent symbol counts as `n`."""
    return sorted(symbol for symbol, value in asked.items() if granted.get(symbol, "n") != value)


def with_hz(kconfig: str, hz: int) -> str:
    """The tree's top Kconfig with a definition of HZ ahead of the one in arch/um/Kconfig.

    Under ARCH=um HZ is an int without a prompt and with a default of 100. A symbol may be defined twice and its first
    default counts, so a generated top file handed to kbuild as KBUILD_KCONFIG sets it while the tree stays as it is.
    """
    definition = f"\nconfig HZ\n\tint\n\tdefault {hz}\n"
    mainmenu = re.search(r"(?m)^mainmenu\b.*\n", kconfig)
    if mainmenu is None:
        return definition + kconfig
    return kconfig[: mainmenu.end()] + definition + kconfig[mainmenu.end() :]


def names(options: dict[str, str], prefix: str) -> Iterable[str]:
    """Lower-case names of the enabled symbols that begin with `prefix` (`NET_SCH_`, `TCP_CONG_`), in order."""
    return sorted(
        symbol.removeprefix(prefix).lower()
        for symbol, value in options.items()
        if symbol.startswith(prefix) and value in ("y", "m")
    )
