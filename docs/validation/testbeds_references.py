"""Makes the references l4s-pam2025 and prague-fallback from tables of cells, one row per cell.

`python docs/validation/testbeds_references.py PAM2025.csv FALLBACK.csv [FOLDER]`; FOLDER is by default
catalog/references. The tables hold means, standard deviations and numbers of trials; see the two functions.
Cells without a run in the catalog are left out.
"""

import csv
import math
import sys
from collections.abc import Iterator
from pathlib import Path

from bakeoff.scenario import catalog

Row = dict[str, str]
COLUMNS = ["suite", "scenario", "run", "flow", "measure", "value", "unit", "source", "seed", "sd", "n", "licence"]
PAM = "fatihsarpkaya/L4S-PAM2025 (PAM 2025), mean of trials"
FALLBACK = "Greenscreen23/prague-fallback-experiments (2025), mean of trials"

OTHERS = {  # control, tcp_ecn, Prague's ecn_fallback: the label in the suite
    ("cubic", "0", "0"): "cubic", ("cubic", "1", "0"): "cubic-ecn", ("cubic", "1", "1"): "cubic-ecn-fallback",
    ("bbr", "0", "0"): "bbr", ("bbr2", "0", "0"): "bbr2", ("bbr2", "1", "0"): "bbr2-ecn",
    ("bbr2", "1", "1"): "bbr2-ecn-fallback", ("bbr3", "0", "0"): "bbr3", ("bbr3", "1", "0"): "bbr3-ecn",
    ("bbr3-ecnlow", "1", "0"): "bbr3-ecn_low",
}  # fmt: skip
KERNELS = {"5.15.72-56eae305c-prague-91": "before", "5.15.725.15-prague-lhagen+": "after"}


def of_pam(rows: list[Row]) -> Iterator[Row]:
    """Columns: set, l4s_cc, other_cc, other_tcp_ecn, prague_ecn_fallback, base_rtt_ms, aqm, n_bdp, n_l4s, n_other.

    l4s_tput_mbit, other_tput_mbit, l4s_srtt_ms and other_srtt_ms, and of each _sd and _n without the unit.
    """
    cells: dict[tuple[str, str, str, bool], list[Row]] = {}
    for row in rows:
        other = OTHERS.get((row["other_cc"], row["other_tcp_ecn"], row["prague_ecn_fallback"]))
        if row["l4s_cc"] != "prague" or other is None:
            continue
        # DualPI2's limit is the same for all buffers, so that its cells repeat one experiment.
        buffer = "1bdp" if row["aqm"] == "DualPI2" else f"{float(row['n_bdp']):g}bdp"
        many = row["set"] == "multi"
        first = f"{row['n_l4s']}-vs-{row['n_other']}" if many else other
        scenario = "many" if many else f"{row['base_rtt_ms']}ms"
        cell = scenario, f"{first}-{row['aqm']}-{buffer}", "cubic" if many else other, many
        cells.setdefault(cell, []).append(row)
    for (scenario, run, other, many), of in cells.items():
        for side, flow in (("l4s", "prague"), ("other", other)):
            for name, measure, unit, scale in (("tput", "goodput", "bit/s", 1e6), ("srtt", "srtt_mean", "s", 1e-3)):
                column = f"{side}_{name}_{'mbit' if name == 'tput' else 'ms'}", f"{side}_{name}"
                which = flow + {"tput": "*", "srtt": "1"}[name] if many else flow
                at = {"suite": "l4s-pam2025", "scenario": scenario, "run": run, "flow": which, "measure": measure}
                yield at | {"unit": unit, "source": PAM, "licence": "none given"} | _pooled(of, *column, scale)


def of_fallback(rows: list[Row]) -> Iterator[Row]:
    """Columns: set, kernel, other_cc, aqm, rate_mbit, base_rtt_ms, n_bdp, prague_mbit, _sd, _n, and other_."""
    for row in rows:
        kernel = KERNELS.get(row["kernel"])
        if kernel is None:
            continue
        place = (
            f"{float(row['n_bdp']):g}bdp"
            if row["set"] == "reproduce"
            else f"{row['rate_mbit']}mbit-{row['base_rtt_ms']}ms"
        )
        run = f"{kernel}-{row['other_cc']}-{row['aqm']}-{place}"
        for side, flow in (("prague", "prague"), ("other", row["other_cc"])):
            at = {"suite": "prague-fallback", "scenario": row["set"], "run": run, "flow": flow, "measure": "goodput"}
            number = _pooled([row], f"{side}_mbit", side, 1e6)
            yield at | {"unit": "bit/s", "source": FALLBACK, "licence": "GPL-2.0"} | number


def _pooled(rows: list[Row], value: str, stem: str, scale: float) -> Row:
    """Mean, standard deviation and number of all trials of these rows."""
    parts = [(float(row[value]), float(row[f"{stem}_sd"] or 0), int(row[f"{stem}_n"])) for row in rows]
    n = sum(part[2] for part in parts)
    mean = sum(m * k for m, _, k in parts) / n
    squares = sum((k - 1) * s * s + k * (m - mean) ** 2 for m, s, k in parts)
    sd = math.sqrt(squares / (n - 1)) if n > 1 else 0.0
    return {"value": f"{mean * scale:.6g}", "sd": f"{sd * scale:.4g}", "n": str(n)}


def main() -> None:
    """Writes the two files."""
    pam, fallback, *folder = sys.argv[1:]
    where = Path(folder[0]) if folder else Path(__file__).parents[2] / "catalog/references"
    for name, made, path in (("l4s-pam2025", of_pam, pam), ("prague-fallback", of_fallback, fallback)):
        with Path(path).open(newline="") as stream:
            runs = {(run.scenario, run.run) for run in catalog.select(name)}
            found = [row for row in made(list(csv.DictReader(stream))) if (row["scenario"], row["run"]) in runs]
        with (where / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n", restval="")
            writer.writeheader()
            writer.writerows(sorted(found, key=lambda row: [row[key] for key in COLUMNS[:5]]))


if __name__ == "__main__":
    main()
