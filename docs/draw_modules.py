"""Draws docs/images/modules.svg: the modules of crates/sim/src in their order, and who imports from whom.

The arcs come from the `use crate::MODULE` lines and `crate::MODULE` paths of the code. It ends with 1 if an arc goes
downwards.
"""

import re
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Curve

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "crates/sim/src"
MODULES = {
    "base": "units, chance, events",
    "packet": "what travels",
    "qdisc": "queue disciplines",
    "cc": "congestion controls",
    "tcp": "one Linux endpoint",
    "network": "graph, wires, tunnels",
    "endpoint": "flows and probes",
    "record": "time series",
    "sim": "the event loop",
    "build": "document to outcome",
}
ORDER = list(MODULES)
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")


def imports() -> dict[tuple[str, str], int]:
    """(importing module, imported module) -> in how many files."""
    found: dict[tuple[str, str], int] = {}
    for module in MODULES:
        files = [*(SOURCE / module).rglob("*.rs"), *SOURCE.glob(f"{module}.rs")]
        for file in files:
            # Tests stand at the bottom of a file, and may use what they like.
            text = re.sub(r"//.*", "", file.read_text(encoding="utf-8").partition("#[cfg(test)]\nmod ")[0])
            names = set(re.findall(r"crate::(\w+)", text))
            names |= {word for group in re.findall(r"crate::\{([^}]*)\}", text) for word in re.findall(r"\w+", group)}
            for other in names & set(MODULES) - {module}:
                found[module, other] = found.get((module, other), 0) + 1
    return found


def draw(arcs: dict[tuple[str, str], int], path: Path) -> None:
    """One box per module, one arc per pair."""
    mpl.rcParams.update({"svg.hashsalt": "bakeoff", "svg.fonttype": "path", "font.size": 10})
    figure, axes = plt.subplots(figsize=(8, 7.6))
    y = {module: -0.9 * i for i, module in enumerate(MODULES)}
    for module, holds in MODULES.items():
        box = FancyBboxPatch((0, y[module] - 0.29), 3.6, 0.58, boxstyle="round,pad=0.02", fc="#f4f4f4", ec="#333333")
        axes.add_patch(box)
        axes.text(0.15, y[module], module, va="center", weight="bold", family="monospace")
        axes.text(3.5, y[module], holds, va="center", ha="right", size=8, color="#444444")
    for (module, other), files in sorted(arcs.items()):
        start, end = y[module], y[other] - 0.08
        reach = 3.66 + 0.42 * abs(ORDER.index(module) - ORDER.index(other)) ** 0.9
        colour = COLOURS[ORDER.index(module) % len(COLOURS)]
        curve = Curve([(3.64, start + 0.08), (reach, start), (reach, end), (3.64, end)], [1, 4, 4, 4])
        width = 0.5 + 0.35 * files**0.5
        axes.add_patch(PathPatch(curve, fc="none", ec=colour, lw=width, alpha=0.75, capstyle="round"))
        axes.plot(3.66, end, marker="<", ms=4, color=colour)
    legend = (
        "An arc is an import. Its colour is that of the module\nwhich imports; its width grows with the files that do."
    )
    axes.text(5.6, -9.5, legend, size=8, color="#444444", va="center", ha="center")
    axes.set(xlim=(-0.1, 7.2), ylim=(-9.75, 0.5))
    axes.axis("off")
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def main() -> None:
    """Draws, then complains of arcs against the order."""
    arcs = imports()
    draw(arcs, ROOT / "docs/images/modules.svg")
    wrong = [f"{module} imports from {other}" for module, other in arcs if ORDER.index(other) > ORDER.index(module)]
    if wrong:
        raise SystemExit("against the order: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
