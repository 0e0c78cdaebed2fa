"""Names come from files, and files from anybody: they are refused, or shown without doing anything."""

import json
import shutil
from pathlib import Path

import pytest

from bakeoff import campaign, results
from bakeoff.campaign import Execution
from bakeoff.duels import Duel
from bakeoff.errors import BakeoffError, printable
from bakeoff.scenario import catalog, duel

ESCAPE = "a\x1b[31mb"
SCENARIO = {
    "scenario": "s",
    "title": "t",
    "duration": "2s",
    "network": {"path": ["cli", "mid", "srv"], "rtt": "10ms", "bottleneck": {"rate": "10mbit", "qdisc": "pfifo"}},
    "flows": [{"name": "f", "cc": "reno", "start": "{start}"}, {"name": "g", "cc": "cubic"}],
    "vary": {"start": {"now": "0s", "later": "100ms"}},
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A duel's results."""
    folder = tmp_path_factory.mktemp("done") / "c"
    run = duel(Duel(cc1="reno", cc2="cubic", qdisc="pfifo", rate="10mbit", duration="2s"))
    assert not campaign.run([run], folder, Execution(jobs=1)).failed
    return folder


def written(folder: Path, **changes) -> str:
    (folder / "mine.yaml").write_text(json.dumps(SCENARIO | changes))
    return str(folder / "mine.yaml")


@pytest.mark.parametrize("text", [ESCAPE, "a\x07b", "a\x9b31mb", "a\x00b", "a\u202eb", "a\x7fb"])
@pytest.mark.parametrize("place", ["scenario", "title", "flow", "label"])
def test_no_scenario_has_characters_that_a_terminal_acts_on(tmp_path, place, text):
    flows = [{"name": text, "cc": "reno", "start": "{start}"}]
    change = {"flow": {"flows": flows}, "label": {"vary": {"start": {text: "0s", "later": "1s"}}}}
    with pytest.raises(BakeoffError, match="contains an unprintable character; expected plain text") as told:
        catalog.select(written(tmp_path, **change.get(place, {place: text})))
    assert str(told.value).isprintable()


@pytest.mark.parametrize("text", ["../../evil", "a\nb", "<script>x</script>", "/etc/passwd"])
@pytest.mark.parametrize("place", ["scenario", "flow"])
def test_no_name_leads_elsewhere(tmp_path, place, text):
    change = {"scenario": text} if place == "scenario" else {"flows": [{"name": text, "cc": "reno"}], "vary": {}}
    with pytest.raises(BakeoffError, match="expected a name without spaces, slashes, '<' or '>'"):
        catalog.select(written(tmp_path, **change))


def test_a_run_has_a_name_on_one_line(tmp_path):
    with pytest.raises(BakeoffError, match=r"run: 'a\\nb'; expected a name on one line"):
        catalog.select(written(tmp_path, vary={"start": {"a\nb": "0s", "later": "1s"}}))


@pytest.mark.parametrize("label", ["../../evil", "..", "<b>x", "a/../../b", "[red]", "a|b"])
def test_a_label_stays_inside_of_the_campaign(tmp_path, label):
    runs = catalog.select(written(tmp_path, vary={"start": {label: "0s", "later": "100ms"}}))
    root = tmp_path / "c"
    try:
        report = campaign.run(runs, root, Execution(jobs=1))
    except BakeoffError as error:
        assert "not a valid folder name" in str(error)  # noqa: PT017 (either is right)
        assert not root.exists()
    else:
        assert all(done.path.parent == root / "local" / "s" for done in report.runs)
    assert {path.name for path in tmp_path.iterdir()} <= {"c", "mine.yaml"}


@pytest.mark.parametrize("place", ["suite", "scenario", "run", "flow", "point", "label"])
def test_results_with_such_names_are_left_out_and_told(done, tmp_path, cli, place):
    shutil.copytree(done, tmp_path / "c")
    [path] = (tmp_path / "c").rglob("run.json")
    document = json.loads(path.read_text())
    resolved = document["resolved"]
    if place == "flow":
        resolved["flows"][0]["name"] = ESCAPE
    elif place in ("point", "label"):
        resolved["point"] = {ESCAPE: "x"} if place == "point" else {"qdisc": ESCAPE}
    else:
        resolved[place] = ESCAPE
    path.write_text(json.dumps(document))
    code, out, err = cli("table", str(tmp_path / "c"))
    assert (code, out) == (2, "")
    assert r"the name 'a\x1b[31mb' contains an unprintable character" in err
    assert printable(err) == err


def test_a_summary_of_another_run_is_told(done, tmp_path, cli):
    shutil.copytree(done, tmp_path / "c")
    [path] = (tmp_path / "c").rglob("summary.json")
    path.write_text(path.read_text().replace('"cubic": {', '"other": {'))
    code, _, err = cli("table", str(tmp_path / "c"))
    assert code == 2
    assert "summary.json: flows: 'cubic' of run.json is missing; expected the file of this run" in err


@pytest.mark.parametrize("note", [ESCAPE, "two\nlines", "a\u202eb"])
def test_a_note_is_one_line_of_text(tmp_path, cli, note):
    code, _, err = cli("duel", "reno", "cubic", "--note", note, "--out", str(tmp_path / "c"))
    assert (code, printable(err)) == (2, err)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("note", ["<script>alert(1)</script>", "../../x", "[red]", "größer als 'vorher'"])
def test_other_notes_are_kept_as_they_are(tmp_path, note):
    run = duel(Duel(cc1="reno", cc2="cubic", qdisc="pfifo", rate="10mbit", duration="2s"))
    campaign.run([run], tmp_path / "c", Execution(jobs=1, note=note), request=results.Request(kind="duel"))
    assert results.read_campaign(tmp_path / "c").provenance.note == note


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", ESCAPE, "two\nlines", "latest", "duels", ""])
def test_a_campaign_has_a_name_below_results(tmp_path, cli, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    code, _, err = cli("run", "l4s-tests/s7*", "--name", name)
    assert (code, printable(err)) == (2, err)
    assert "invalid folder name" in err
    assert list(tmp_path.iterdir()) == []


def test_what_is_printable_stays():
    assert printable("größer\tals\n'dies'") == "größer\tals\n'dies'"
    assert printable(ESCAPE + "\x9b\u202e") == r"a\x1b[31mb\x9b\u202e"
