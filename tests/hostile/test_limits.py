"""What would take all memory or stack, hang or end in a traceback, is refused with a message."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from bakeoff import replay, results
from bakeoff.errors import BakeoffError
from bakeoff.references import references
from bakeoff.results import parquet
from bakeoff.results.series import COLUMNS, read_series, write_series
from bakeoff.scenario import catalog
from bakeoff.scenario.yaml_file import parse_value

DEEP = "has more than 64 levels of mappings and lists inside each other"


# YAML.


@pytest.mark.parametrize("text", ["a: " + "[" * 30_000, "a: " + "{a: " * 10_000, "- " * 20_000, "? " * 20_000])
def test_deep_yaml_is_told_before_the_library_runs_out_of_stack(tmp_path, text):
    (tmp_path / "x.yaml").write_text(text)
    # In a process of its own, because it would take ours with it.
    words = [sys.executable, "-m", "bakeoff", "show", str(tmp_path / "x.yaml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"bakeoff: {tmp_path}/x.yaml: {DEEP}\n")


def test_aliases_are_not_written_out():
    levels = "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    with pytest.raises(BakeoffError, match="characters with its aliases and placeholders written out"):
        parse_value("a0: &a0 [x,x]\n" + levels, "x")


@pytest.mark.parametrize("text", ["9" * 5000, "0x" + "f" * 5000, "!!int 0b" + "1" * 5000, "!!float x"])
def test_a_number_has_an_end(text):
    with pytest.raises(BakeoffError, match=r"not YAML: .*(number of .* characters; expected|could not convert)"):
        parse_value(text, "x")


@pytest.mark.parametrize("kind", ["timestamp 2020-01-01", "binary aGVq", "set {a}", "omap [a: 1]", "x y"])
def test_only_plain_data_comes_out_of_yaml(kind):
    with pytest.raises(BakeoffError, match="could not determine a constructor"):
        parse_value(f"!!{kind}", "x")


@pytest.mark.parametrize("text", ["{[a]: 1}", "? ? a", "{a: 1, {b: 1}: 2}"])
def test_a_key_is_a_word(text):
    with pytest.raises(BakeoffError, match="not YAML: found unhashable key"):
        parse_value(text, "x")


def test_a_scenario_is_a_file(tmp_path):
    os.mkfifo(tmp_path / "x.yaml")
    with pytest.raises(BakeoffError, match=r"x.yaml: cannot be read: is not a regular file"):
        catalog.select(str(tmp_path / "x.yaml"))
    with pytest.raises(BakeoffError, match="zero byte"):
        catalog.select("a\0.yaml")


# Results.


def everything(campaign: Path, folder: Path) -> None:
    """Read all of the one run in it."""
    [result] = results.survey(campaign).results or [results.read(folder)]
    _ = (result.summary, result.counters, result.series)


@pytest.mark.parametrize("name", ["run.json", "summary.json", "counters.json", "series.parquet"])
@pytest.mark.parametrize("how", ["pipe", "deep", "long", "device"])
def test_no_file_of_a_results_folder_is_waited_for_or_trusted(done, tmp_path, name, how):
    shutil.copytree(done, tmp_path / "c")
    [folder] = results.scan(tmp_path / "c")
    path = folder / name
    path.unlink()
    if how == "pipe":
        os.mkfifo(path)
    elif how == "deep":
        path.write_text('{"format": 1, "resolved": ' + "[" * 100_000)
    elif how == "long":
        path.touch()
        os.truncate(path, 1 << 40)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(BakeoffError):
        everything(tmp_path / "c", folder)


def samples(rows: int) -> pl.DataFrame:
    words = {column: pl.repeat(column, rows, eager=True) for column in ("kind", "name", "metric")}
    numbers = {column: pl.repeat(0.0, rows, eager=True) for column in ("time", "value")}
    return pl.DataFrame({column: (words | numbers)[column] for column in COLUMNS})


def test_samples_that_unfold_to_gigabytes_are_not_unfolded(tmp_path, monkeypatch):
    """A million rows are 64 MB in memory and 16 MB of unpacked numbers; equal ones take little space in the file."""
    path = tmp_path / "series.parquet"
    write_series(path, samples(1_000_000))
    with path.open("rb") as file:
        assert 80_000_000 < parquet.unfolded(file) < 81_000_000
    assert read_series(path).height == 1_000_000
    monkeypatch.setattr("bakeoff.results.series._ALWAYS", 64_000_000)
    assert 100 * path.stat().st_size < 64_000_000
    with pytest.raises(BakeoffError, match=r"would unfold to 80,...,... bytes; at most 64,000,000"):
        read_series(path)


@pytest.mark.parametrize("cut", [1, 4, 9, 100, 300])
def test_a_footer_that_is_damaged_is_told(tmp_path, cut):
    path = tmp_path / "series.parquet"
    write_series(path, samples(2))
    whole = path.read_bytes()
    for damaged in (whole[:-cut], whole[: -8 - cut] + whole[-8:], whole[: -8 - cut] + b"\xff" * cut + whole[-8:]):
        path.write_bytes(damaged)
        with pytest.raises(BakeoffError, match=r"cannot be read as Parquet|would unfold"):
            read_series(path)


def test_columns_hold_what_they_are_to_hold(tmp_path):
    samples(2).with_columns(pl.col("value").cast(pl.String)).write_parquet(tmp_path / "s")
    with pytest.raises(BakeoffError, match="the column value holds String"):
        read_series(tmp_path / "s")


# Arrivals and references.


@pytest.mark.parametrize("row", ["0," + "9" * 5000 + ",0,ce", "1e" + "9" * 5000 + ",60,0,ce", "0,60,0," + "x" * 5000])
def test_a_field_of_arrivals_of_thousands_of_digits(tmp_path, row):
    (tmp_path / "a.csv").write_text(f"time_s,bytes,flow,ecn\n{row}\n")
    with pytest.raises(BakeoffError, match=r"a\.csv:2: ") as told:
        replay.arrivals.read(tmp_path / "a.csv")
    assert len(str(told.value)) < len(str(tmp_path)) + 200


def test_arrivals_are_a_file_of_text(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "latin").write_bytes(b"time_s,bytes,flow,ecn\n\xe4")
    for name, why in (("pipe", "is not a regular file"), ("latin", "not a text file"), ("a\0b", "zero byte")):
        with pytest.raises(BakeoffError, match=why):
            replay.arrivals.read(tmp_path / name)


def test_arrivals_without_end_are_refused_before_they_are_taken_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(replay.arrivals, "_MOST", 2)
    path = tmp_path / "a.csv"
    head, packet = "time_s,bytes,flow,ecn\n", "0,60,0,ce\n"
    path.write_text(head + 2 * packet)
    assert len(replay.arrivals.read(path).packets) == 2
    path.write_text(head + 3 * packet)
    with pytest.raises(BakeoffError, match=r"a\.csv: has more than 2 lines"):
        replay.arrivals.read(path)


def test_a_line_of_a_reference_that_ends_early_is_named(tmp_path):
    """The columns may come in any order, so that the last one may be any."""
    columns = "suite,scenario,run,flow,measure,unit,source,value"
    (tmp_path / "mine.csv").write_text(f"{columns}\nh,s,s,f,steady_state.goodput,bit/s,x\n")
    with pytest.raises(BakeoffError, match=r"mine\.csv:2: missing value"):
        references.load(tmp_path)


@pytest.mark.parametrize("text", [b"suite,\xe4\n", b"a" * 200_000, b'"' + b"a" * 200_000])
def test_a_reference_that_is_no_csv_of_text(tmp_path, text):
    (tmp_path / "mine.csv").write_bytes(text)
    with pytest.raises(BakeoffError, match=r"mine\.csv: "):
        references.load(tmp_path)


# matplotlib.


def test_a_foreign_matplotlibrc_is_not_read(done, tmp_path):
    """A file of that name, in the folder that bakeoff is called in, would be opened: a pipe shows who does."""
    os.mkfifo(tmp_path / "matplotlibrc")
    code = "from bakeoff.plots.mpl import mpl; import os; print(mpl.matplotlib_fname(), os.getcwd())"
    words = [sys.executable, "-c", code]
    shown = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True).stdout
    assert shown.strip().endswith(str(tmp_path))
    shutil.copytree(done, tmp_path / "c")
    plot = [sys.executable, "-m", "bakeoff", "plot", "c", "--out", "pictures/"]
    ended = subprocess.run(plot, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr.count("Traceback")) == (0, 0), ended.stderr
    assert list(Path(tmp_path / "pictures").rglob("*.svg"))


def test_a_deep_run_json_of_valid_form(done, tmp_path):
    shutil.copytree(done, tmp_path / "c")
    [path] = (tmp_path / "c").rglob("run.json")
    path.write_text(json.dumps(json.loads(path.read_text()))[:-1] + ',"x":' + "[" * 5000 + "]" * 5000 + "}")
    assert results.survey(tmp_path / "c").complaints()


def test_a_summary_that_is_cut_off_behind_a_wrong_key(done, tmp_path):
    shutil.copytree(done, tmp_path / "c")
    [path] = (tmp_path / "c").rglob("summary.json")
    path.write_text('{"format": null, "flows": {"a"')
    [result] = results.survey(tmp_path / "c").results
    with pytest.raises(BakeoffError, match=r"summary.json: the file: Input data was truncated"):
        _ = result.summary
