# ruff: noqa: E501
"""Run the examples of the gallery, draw its pictures, and write docs/gallery.md: what `make gallery` does.

    .venv/bin/python docs/draw_gallery.py [RESULTS]

RESULTS is where the runs go (results/gallery); what is there already is not run again. The same build draws the same
bytes.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from bakeoff.cli.app import app
from bakeoff.present.kinds import KINDS

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images" / "gallery"
COLOURS = 96

RUNS = {
    "flows": "--trace cc",
    "home-uplink": "",
    "home-tree": "",
    "parking-lot": "",
    "rate-step": "",
    "web": "",
    "fairness": "--seeds 3",
}
"""The examples, and with which options they are run."""


@dataclass(frozen=True)
class Drawn:
    """A picture: its file, what it shows in a sentence, which results, and the options that draw it."""

    file: str
    shows: str
    results: str
    options: str

    @property
    def command(self) -> list[str]:
        """The words after `bakeoff`, with RESULTS where the results folder goes."""
        return ["plot", *(f"RESULTS/{part}" for part in self.results.split()), *self.options.split()]


FLOWS = "flows/local/flows"
HOME = "home-uplink/local/home-uplink"

SECTIONS: dict[str, list[Drawn]] = {
    "Rates above round-trip times": [
        Drawn("one-flow", "One flow fills the line: its delivery rate, the round-trip time of its packets and that of a ping.",
              f"{FLOWS}/one", "--kind tcp_delivery_with_rtt"),
        Drawn("two-flows", "Prague takes from CUBIC nearly all of a queue that both share: the picture of the suite l4s-tests.",
              f"{FLOWS}/two", "--kind tcp_delivery_with_rtt"),
        Drawn("eight-flows", "Of eight flows each has its line: the colour says the control, the dash which of its flows.",
              f"{FLOWS}/eight", "--kind tcp_delivery_with_rtt"),
        Drawn("twenty-flows", "Twenty flows are a line for each group that is alike, pale lines for its members, and an equal share to "
              "compare with.", f"{FLOWS}/twenty", "--kind tcp_delivery_with_rtt"),
        Drawn("parking-lot", "A flow through three bottlenecks has a panel for each of them, with what it meets there.",
              "parking-lot", "--kind tcp_delivery_with_rtt"),
        Drawn("rate-step", "The rate falls and rises again: the legend says when, and the grey line is the capacity.",
              "rate-step/local/rate-step/prague-fq_codel", "--kind tcp_delivery_with_rtt"),
        Drawn("overlay", "Four runs in one picture: the colour says the control, the dash the run.", "rate-step",
              "--overlay --kind tcp_delivery_with_rtt"),
        Drawn("totals", "The sum of all flows tells whether the line is full, whoever fills it.", f"{FLOWS}/eight",
              "--kind totals_with_tcp_rtt"),
        Drawn("upload-fixed", "The suites' fixed scale makes runs comparable: 1.2 times the capacity, and 100 ms above the empty path.",
              f"{FLOWS}/two", "--kind upload_with_ping_and_tcp_rtt --scale fixed"),
        Drawn("upload-var", "The variable scale goes three times as far up as the delays do.", f"{FLOWS}/two",
              "--kind upload_with_ping_and_tcp_rtt --scale var"),
        Drawn("all-scaled", "A first look at both directions of a home line, without outliers.", f"{HOME}/fq_codel",
              "--kind all_scaled_delivery"),
        Drawn("web", "Short flows and a video beside a download: their goodputs.", "web/local/web/fifo", "--kind tcp_delivery_with_rtt"),
    ],
    "What a call feels": [
        Drawn("call-fifo", "In a FIFO the upload, from 10 s on, takes packets from the call and makes the rest late.", f"{HOME}/fifo",
              "--kind call"),
        Drawn("call-fq", "In fq_codel the call does not feel it.", f"{HOME}/fq_codel", "--kind call"),
        Drawn("call-overlay", "Both in one picture: solid is the FIFO, dashed fq_codel.", "home-uplink", "--overlay --kind call"),
        Drawn("call-cdf", "The same in one picture: of the FIFO's answers half took longer than fq_codel's slowest.", "home-uplink",
              "--overlay --kind ping_cdf"),
    ],
    "Windows and queues": [
        Drawn("cwnd", "Windows of two flows after every ACK, thresholds, and Prague's alpha (a run with `--trace cc`).", f"{FLOWS}/two",
              "--kind cwnd"),
        Drawn("cwnd-eight", "Of more than four flows each control has a panel, because sawteeth hide each other.", f"{FLOWS}/eight",
              "--kind cwnd"),
        Drawn("queue", "Delay, backlog, marks and drops of one queue.", f"{FLOWS}/two", "--kind queue"),
        Drawn("queue-tree", "The leaves of an htb are lines of their own: calls do not wait for the rest.", "home-tree", "--kind queue"),
        Drawn("queue-lot", "All three bottlenecks of the parking lot.", "parking-lot", "--kind queue"),
    ],
    "Distributions": [
        Drawn("box-totals", "Boxes of rates and round-trip times in the steady state.", f"{FLOWS}/eight", "--kind box_totals"),
        Drawn("box-overlay", "The same of two runs: totals and ping.", "web", "--overlay --kind box_totals"),
        Drawn("queue-cdf", "How much of the time the queue was how long, for two qdiscs.", "web", "--overlay --kind queue_cdf"),
        Drawn("fct-cdf", "How long web objects took, for two qdiscs.", "web", "--overlay --kind fct_cdf"),
        Drawn("induced-latency", "What traffic adds to the empty path's round-trip time, the tail enlarged: 1 % of the answers lie above "
              "the value at 1 %.", "home-uplink", "--overlay --kind induced_latency_cdf"),
    ],
    "Campaigns": [
        Drawn("bars", "Who gets what, per qdisc and pair; small figures are Jain's index, whiskers 95 % intervals over seeds.",
              "fairness/local/fairness/*50mbit-20ms*", "--kind bars"),
        Drawn("bars-many", "One, two, eight and twenty flows: those of one control share a bar, whiskers are their range.", "flows",
              "--kind bars"),
        Drawn("sweep", "Goodput against the round-trip time, a panel per qdisc and pair, bands for intervals.",
              "fairness/local/fairness/*50mbit*", "--kind sweep --x rtt"),
        Drawn("sweep-delay", "One number per run makes the other axes lines: the queue's 99th percentile.",
              "fairness/local/fairness/*prague*", "--kind sweep --x rtt --measure queue_delay_p99"),
        Drawn("heatmap", "Jain's index over rate and round-trip time.", "fairness", "--kind heatmap --x rtt --y rate"),
    ],
}  # fmt: skip


def main(results: Path) -> None:
    """Run, draw, write."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    for scenario, options in RUNS.items():
        if not (results / scenario / "campaign.json").exists():
            call(["run", f"examples/gallery/{scenario}.yaml", "--out", str(results / scenario), *options.split()])
    for old in IMAGES.glob("*.png"):
        old.unlink()
    for drawn in (drawn for several in SECTIONS.values() for drawn in several):
        path = IMAGES / f"{drawn.file}.png"
        words = [part for word in drawn.command for part in expanded(word, results)]
        call([*words, "--out", str(path)])
        shrink(path)
    (ROOT / "docs" / "gallery.md").write_text(page(), encoding="utf-8")
    size = sum(path.stat().st_size for path in IMAGES.iterdir())
    sys.stdout.write(f"{len(list(IMAGES.iterdir()))} pictures, {size / 1e6:.2f} MB\n")


def call(words: list[str]) -> None:
    """A command of bakeoff, in this process."""
    sys.stderr.write(f"bakeoff {shlex.join(words)}\n")
    app(words, standalone_mode=False)


def expanded(word: str, results: Path) -> list[str]:
    """RESULTS replaced; a pattern becomes the folders that it names."""
    if not word.startswith("RESULTS/"):
        return [word]
    inside = word.removeprefix("RESULTS/")
    return sorted(str(path) for path in results.glob(inside)) if "*" in inside else [str(results / inside)]


def shrink(path: Path) -> None:
    """A palette of its own for each picture: a third of the bytes, and nobody sees a difference."""
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def page() -> str:
    """docs/gallery.md."""
    lines = [
        "# Gallery",
        "",
        "Every kind of picture that `bakeoff plot` draws, what it shows, and the command that makes it. `bakeoff plot --list-kinds` lists the kinds.",
        "",
        "The runs are those of `examples/gallery/`, each made by `bakeoff run examples/gallery/NAME.yaml --out results/gallery/NAME` "
        "(`flows` with `--trace cc`, `fairness` with `--seeds 3`). `make gallery` runs and draws everything and writes this page.",
        "",
        "In all pictures a congestion control has one colour and one marker, and several of its flows have different dashes. Thick lines are means "
        "over 1 s, thin ones the samples. Grey shading is the steady state, a grey line the capacity of the bottleneck, and dashed vertical lines are timed "
        "changes. The lines below the title are the configuration that was in effect, as the engine reported it. Where an axis cuts data off, a red note says "
        "how far they go. A scenario's `present` sets axes and colours ([the language](scenario-language.md)).",
        "",
    ]
    for section, several in SECTIONS.items():
        lines += [f"## {section}", ""]
        for drawn in several:
            command = " ".join(drawn.command).replace("RESULTS/", "results/gallery/")
            lines += [
                f"**`{kind_of(drawn)}`** {drawn.shows}",
                "",
                f"![{drawn.shows}](images/gallery/{drawn.file}.png)",
                "",
            ]
            lines += ["```", f"bakeoff {command} --out {drawn.file}.png", "```", ""]
    lines += ["## All kinds", "", "| kind | shows | of |", "|---|---|---|"]
    lines += [f"| `{kind.name}` | {kind.shows} | {of(kind.of)} |" for kind in KINDS]
    lines += [
        "",
        "## Validation",
        "",
        "`tests/test_pictures.py` and `tests/test_sweeps.py` draw every kind from results that are known, and hold heights, limits, colours and words against the "
        "arithmetic that is written beside them; a kind that has equal bytes twice is drawn twice there. `tests/test_gallery.py` checks that this page has every kind "
        "and that its pictures exist and stay small. Each picture was looked at when it was drawn.",
        "",
    ]
    return "\n".join(lines)


def kind_of(drawn: Drawn) -> str:
    """The kind that a picture is of."""
    words = drawn.options.split()
    return words[words.index("--kind") + 1]


def of(what: str) -> str:
    """Of what a kind is, in words."""
    return "one run, or several with `--overlay`" if what == "run" else "a campaign"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results" / "gallery")
