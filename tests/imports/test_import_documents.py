"""JSON as it is in files: with a byte order mark, in UTF-16, among other text, by lines, and several documents."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bakeoff import imports
from bakeoff.cli.app import app
from bakeoff.errors import BakeoffError

TEXT = (Path(__file__).parents[1] / "data" / "iperf3" / "first-interval.json").read_text()
DOCUMENT = json.loads(TEXT)


def event(name, data):
    return json.dumps({"event": name, "data": data}) + "\n"


LINES = event("start", DOCUMENT["start"]) + "".join(event("interval", each) for each in DOCUMENT["intervals"])
END = event("end", DOCUMENT["end"])
WARNING = "warning: UDP block size 1460 exceeds TCP MSS 536, may result in fragmentation / drops\n"


def found(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return imports.read(path)


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff" + TEXT,
        TEXT.encode("utf-16"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        TEXT.encode("utf-16-le"),
        TEXT.replace("\n", "\r\n"),
        TEXT.replace('"bits_per_second": 24000000', '"bits_per_second": -nan'),
        TEXT.replace('"rtt": 20000', '"rtt":\tinf'),
        TEXT.replace('"rtt": 20000', '"rtt": -NaN(ind)'),
        LINES + END,
        (LINES + END).encode("utf-16"),
        LINES + END + TEXT,  # --json-stream-full-output
    ],
)
def test_one_document_in_many_forms(tmp_path, content):
    recording = found(tmp_path, content)
    assert recording.warnings == ()
    assert recording.series.filter(metric="received")["value"].to_list() == [3e6, 4e6, 5e6]
    assert recording.series.filter(metric="goodput")["value"].to_list() == [24e6, 8e6, 8e6]


@pytest.mark.parametrize(
    ("content", "warning"),
    [
        (TEXT + "\niperf Done.\n", "ignored text around the JSON: iperf Done."),
        (WARNING + TEXT, "ignored text around the JSON: warning: UDP block size"),
        (LINES, "missing end of the test; the recording may be truncated"),
        (LINES + END[:40], "missing end of the test"),
        (LINES + event("error", "closed") + event("end", {}), "iperf3 stopped with an error: .*closed"),
    ],
)
def test_what_is_wrong_with_a_file_that_is_read_is_said(tmp_path, content, warning):
    recording = found(tmp_path, content)
    assert recording.series.filter(metric="received")["value"].to_list() == [3e6, 4e6, 5e6]
    assert any(re.match(warning, line) for line in recording.warnings)
    assert set(recording.warnings) <= set(recording.record.effective)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "invalid JSON: empty$"),
        (TEXT[:1500], "invalid JSON: Input data was truncated"),
        (TEXT + TEXT, "several JSON documents; expected one per file"),
        (json.dumps(DOCUMENT) + "\n" + json.dumps(DOCUMENT) + "\n", "several JSON documents"),
        (TEXT + TEXT[:500], "several JSON documents"),
        (LINES + LINES, "event 5: another test; expected one test per file"),
        (LINES + '{"other": 1}\n', "event 5: expected an object with 'event' and 'data'"),
        (event("start", {}) + event("error", "no route") + event("end", {}), "iperf3 failed without data: no route$"),
        (TEXT.encode("utf-16")[:-1], "invalid text: truncated data at byte .* of UTF-16"),
        (
            "Connecting to host 10.0.0.2, port 5201\n[  5] local 10.0.0.1 port 40000\n",
            "text output of iperf3; expected the JSON",
        ),
        ("a,b\n1,2\n", "invalid JSON"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path, content, said):
    with pytest.raises(BakeoffError, match=said) as refused:
        found(tmp_path, content)
    assert "\n" not in str(refused.value)


def test_words_of_a_text_are_no_numbers(tmp_path):
    """NaN inside of a string stays, beside one that is a value."""
    text = TEXT.replace("Linux host", r"Linux \"x, nan, inf ]\" y").replace('"rtt": 20000', '"rtt": nan')
    assert found(tmp_path, text).record.versions["kernel"] == 'Linux "x, nan, inf ]" y'


def test_the_command_prints_the_warning(tmp_path):
    (tmp_path / "a.json").write_text(TEXT + "\niperf Done.\n")
    ended = CliRunner().invoke(app, ["import", str(tmp_path / "a.json"), "--out", str(tmp_path / "out")])
    assert ended.exit_code == 0
    assert "warning: " in ended.stderr
    assert ended.stdout.strip() == str(tmp_path / "out")
