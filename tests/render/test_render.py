"""`bakeoff render`: what a template can ask, what an error names, and that a hostile template gets nowhere."""

import errno
import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bakeoff.campaign import Execution
from bakeoff.errors import BakeoffError
from bakeoff.render.finished_runs import FinishedRuns
from bakeoff.render.page import Page, rendered, write
from bakeoff.render.pictures import Pictures
from bakeoff.render.template_functions import Functions
from bakeoff.render.verdicts import Verdicts

ROOT = Path(__file__).parents[2]
SCENARIO = """
scenario: one
duration: 4s
network: {path: [cli, mid, srv], rtt: "{rtt}", bottleneck: {rate: 5mbit, qdisc: fq_codel flows 1}}
flows: [{name: a, cc: cubic}, {name: b, cc: reno}]
probes: [{name: ping, type: icmp, every: 50ms}]
vary: {rtt: [10ms, 40ms]}
measure: {steady_state: {window: 3s, ends: at end}}
"""
CLAIMS = """
document: {name: tiny, title: A tiny document}
claims:
  - id: longer
    says: The longer path has half the RTT of the shorter one.
    where: {section: 3}
    runs: {short: tiny/one/10ms, long: tiny/one/40ms}
    size: {of: ping_mean(of="long") / ping_mean(of="short"), published: 0.5, tolerance: 10%, because: It says half.}
    cause:
      kind: measure
      says: It is longer.
      source: The figure has the axes the other way round.
      direction: ping_mean(of="long") > ping_mean(of="short")
  - id: full
    says: Both flows together fill the line at any RTT.
    where: {section: 2}
    runs: tiny/one/*
    direction: total_goodput() > "4 Mbit/s"
  - id: line
    says: It works on a real line.
    where: {section: 5}
    needs: a real line
"""

# Of the third seed one flow is missing.
REFERENCE = """suite,scenario,run,flow,measure,value,unit,source,seed
tiny,one,10ms,a,goodput,3000000,bit/s,a kernel,1
tiny,one,10ms,b,goodput,1000000,bit/s,a kernel,1
tiny,one,10ms,a,goodput,2000000,bit/s,a kernel,2
tiny,one,10ms,b,goodput,2000000,bit/s,a kernel,2
tiny,one,10ms,a,goodput,9000000,bit/s,a kernel,3
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A catalog, and below `runs` two runs of it with three seeds each."""
    from bakeoff import campaign
    from bakeoff.scenario import catalog

    top = tmp_path_factory.mktemp("render")
    for name, text in {
        "suites/tiny/one.yaml": SCENARIO,
        "claims/tiny.yaml": CLAIMS,
        "references/kernel.csv": REFERENCE,
    }.items():
        path = top / "catalog" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BAKEOFF_CATALOG", str(top / "catalog"))
        runs = catalog.select("tiny/one", seeds=3)
        campaign.run(runs, top / "runs", Execution(jobs=1))
    return top


@pytest.fixture
def render(done, cli, tmp_path, monkeypatch):
    """Write a template and render it: the exit code, the page (None without one) and what was said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAKEOFF_CATALOG", str(done / "catalog"))

    def call(text, *options):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in/page.md").write_text(text)
        words = ["render", "in/page.md", "--out", "out/", "--seeds", "3", "-j", "1", *options]
        code, _, err = cli(*words, *([] if "--check" in options else ["--results", str(done / "runs")]))
        page = tmp_path / "out/page.md"
        return code, page.read_text() if page.exists() else None, err

    return call


@pytest.fixture(scope="module")
def store(done):
    """The runs as a template's functions find them."""
    return FinishedRuns([done / "runs"])


@pytest.fixture
def answers(store, done, monkeypatch):
    """The functions of a page."""
    monkeypatch.setenv("BAKEOFF_CATALOG", str(done / "catalog"))
    return Functions(store, Verdicts(store, 3, 1), Pictures("page"))


@pytest.fixture(scope="module")
def summaries(store):
    """The measures of the runs by name and seed."""
    return {(one.run.run, one.run.seed): one.summary for one in store.results}


def test_numbers_are_means_over_the_seeds(render, summaries):
    goodputs = [summaries["10ms", seed].flows["a"].steady_state.goodput_bps / 1e6 for seed in (1, 2, 3)]
    mean = sum(goodputs) / 3
    # Student's 97.5 % quantile with two degrees of freedom is 4.3027, and the interval t s / sqrt(3).
    ci95 = 4.3027 * (sum((one - mean) ** 2 for one in goodputs) / 2) ** 0.5 / 3**0.5
    code, page, _ = render(
        "{{ measure('goodput(\"a\")', 'tiny/one/10ms', unit='Mbit/s', digits=3) }}\n"
        "{{ measure('goodput(\"a\")', 'tiny/one/10*', unit='Mbit/s', digits=1, interval=false) }}\n"
        "{{ measure('ping_mean(of=\"l\") > ping_mean(of=\"s\")', {'s': 'tiny/one/10ms', 'l': 'tiny/one/40ms'}) }}\n"
        "{{ measure('convergence(ratio=1.0001, hold=\"3s\")', 'tiny/one/10ms', unit='ms') }}\n"
        "{{ measure('goodput(\"a\")', 'tiny/one/10ms', unit='Mbit/s', interval=false, show_unit=false) }}\n"
        "{{ run_count() }} {{ result_count('tiny/*') }} {{ runs() | join(', ') }}\n"
    )
    assert (code, page.splitlines()) == (
        0,
        [
            f"{mean:.3f} ± {ci95:.3f} Mbit/s",
            f"{mean:.1f} Mbit/s",
            "holds",
            "never",
            f"{mean:.2f}",
            "2 6 tiny/one/10ms, tiny/one/40ms",
        ],
    )


def test_a_measure_can_be_of_recorded_numbers(render):
    # 3 / 1 and 2 / 2: the mean is 2, and Student's 12.706 times 1.414 / sqrt(2) is 12.7, cut at 0.
    code, page, _ = render(
        "{{ measure('goodput(\"a\") / goodput(2)', 'tiny/one/10ms', reference='kernel', digits=1) }}\n"
        "{{ measure('goodput(1)', 'tiny/one/10ms', reference='kernel', unit='Mbit/s', interval=false) }}\n"
    )
    # (3 + 2 + 9) / 3
    assert (code, page.splitlines()) == (0, ["2.0 [0.0, 14.7]", "4.67 Mbit/s"])


LOOKS = "{'ours': 'cubic', 'kernel': 'black hollow'}, axis='a / b', name='who', alt='who wins'"


def test_dots_are_a_picture_of_measures(render, tmp_path, summaries):
    rows = "{'near': {'ours': 'tiny/one/10ms', 'kernel': {'run': 'tiny/one/10ms', 'reference': 'kernel'}}}"
    code, page, _ = render("{{ dots(" + rows + ", 'goodput(1) / goodput(2)', " + LOOKS + ", log=true, mark=1.0) }}")
    assert (code, page) == (0, "![who wins](page/who.svg)")
    goodputs = [
        [summaries["10ms", seed].flows[flow].steady_state.goodput_bps for flow in ("a", "b")] for seed in (1, 2, 3)
    ]
    ratio = sum(one / other for one, other in goodputs) / 3
    words = re.findall(r">([^<>]+)</text>", (tmp_path / "out/page/who.svg").read_text())
    assert {"near", "ours", "kernel", "a / b", "2.00", f"{ratio:.2f}"} <= set(words)


def test_tables_have_columns_and_measures_of_the_runs(render, summaries):
    code, page, _ = render(
        "{{ table('tiny/one/*', columns={'Jain': 'jain', 'marks': 'marks() + 1'}, sort='-rtt', head='path') }}\n"
        "{{ table({'near': 'tiny/one/10ms'}, columns=['n']) }}\n{{ table('tiny/one/10ms') }}\n"
    )
    jain = [sum(summaries[run, seed].jain for seed in (1, 2, 3)) / 3 for run in ("40ms", "10ms")]
    lines = page.splitlines()
    assert code == 0
    assert lines[0] == "| path | Jain | marks |"
    assert lines[2].startswith(f"| 40ms | {jain[0]:.4g} | ")
    assert re.fullmatch(rf"\| 10ms \| {jain[1]:.4g} \| [0-9.]+( ± [0-9.]+)? packets \|", lines[3])
    assert lines[4:7] == ["| run | n |", "| --- | ---: |", "| near | 3 |"]
    assert lines[7].startswith("### tiny/one, steady state 1 s to 4 s")


def test_what_the_catalog_says_of_a_claim_needs_no_runs(answers, monkeypatch):
    monkeypatch.setattr(Verdicts, "one", lambda *_: pytest.fail("decided"))
    assert answers.claim("tiny/longer", "published") == "0.5 (± 10%)"
    assert answers.claim("tiny/longer", "kernel") == ""


def test_claims_are_decided_from_the_results(render):
    code, page, _ = render(
        "{{ claim('tiny/full', 'verdict') }}\n{{ claim('tiny/longer') }}\n{{ claim('tiny/longer', 'explained') }}\n"
        "{{ causes('tiny') }}\n{{ claims('tiny', columns=['claim', 'verdict', 'cause']) }}\n{{ verdict_counts() }}\n"
    )
    lines = page.splitlines()
    assert (code, lines[0]) == (0, "holds")
    assert re.fullmatch(r"\*\*does not hold\*\* \(measured: [0-9.]+( ± [0-9.]+)?; published: 0.5 \(± 10%\)\)", lines[1])
    assert lines[2].startswith(
        'The cause lies in the measure, as its test shows. It is longer. The test gives `ping_mean(of="long")` '
    )
    assert lines[3] == f"- The longer path has half the RTT of the shorter one. {lines[2]}"
    assert lines[6] == "| longer | does not hold | measure, shown |"
    assert lines[8] == "| line | cannot be run here | it needs a real line |"
    # One holds, one does not, one cannot be run.
    assert lines[-1] == "| tiny | 3 | 1 | 1 | 0 | 0 | 1 |"


def test_pictures_lie_beside_the_page(render, tmp_path):
    text = (
        "{{ plot('tiny/one/10ms', alt='a [b] <i>') }}\n{{ plot_link('tiny/one/*', 'both', 'bars', format='svg') }}\n"
        "{{ plot({'near': 'tiny/one/10ms', 'far': 'tiny/one/40ms'}, name='two', format='svg') }}\n"
    )
    code, page, _ = render(text)
    assert (code, page.splitlines()) == (
        0,
        [
            "![a \\[b\\] &lt;i>](page/tiny-one-10ms-tcp_delivery_with_rtt.png)",
            "[both](page/tiny-one-10ms-and-1-bars.svg)",
            "![tcp_delivery_with_rtt: tiny/one/10ms, tiny/one/40ms](page/two.svg)",
        ],
    )
    pictures = {path.name: path.read_bytes()[:4] for path in (tmp_path / "out/page").iterdir()}
    assert pictures == {
        "tiny-one-10ms-and-1-bars.svg": b"<?xm",
        "tiny-one-10ms-tcp_delivery_with_rtt.png": b"\x89PNG",
        "two.svg": b"<?xm",
    }


def test_files_of_a_run_lie_beside_the_page(render, store, tmp_path):
    run = next(result for result in store.repetitions(["tiny/one/10ms"]) if result.run.seed == 1)
    for way in ("to", "from"):
        (run.path / f"mid-{way}-srv.pcapng").write_bytes(way.encode())
    code, page, _ = render(
        "{{ log_link('tiny/one/10ms', 'log') }} {{ flent_link('tiny/one/10ms', 'Flent', seed=2) }}\n"
        "{{ capture_link('tiny/one/10ms', 'packets', 'mid>srv') }}\n"
    )
    assert code == 0
    places = re.findall(r"\]\((.*?)\)", page)
    found = [(tmp_path / "out" / place).read_bytes() for place in places]
    assert found[0] == (run.path / "setup.log").read_bytes()
    assert json.loads(gzip.decompress(found[1]))["metadata"]["BAKEOFF"]["resolved"]["seed"] == 2
    assert gzip.decompress(found[2]) == b"to"
    assert "2 captures" in render("{{ capture_link('tiny/one/10ms', 'packets') }}")[2]


def test_topology_and_provenance(render):
    code, page, _ = render("{{ topology('tiny/one/10ms') }}\n{{ provenance() }}\n")
    lines = page.splitlines()
    assert (code, lines[1]) == (0, "cli → mid → srv")
    assert any("fq_codel flows 1" in line and line.startswith("mid>srv") for line in lines)
    assert re.match(r"6 results, engine sim, bakeoff \S+, .*model epoch \d+, \d{4}-\d\d-\d\d$", lines[-1])


def test_other_files_of_the_folder_are_taken(render, tmp_path):
    (tmp_path / "in/parts").mkdir(parents=True)
    (tmp_path / "in/parts/raw.md").write_text("{{ 1 + 1 }}\n")
    (tmp_path / "in/macros.md").write_text("{% macro twice(x) %}{{ 2 * x }}{% endmacro %}\n")
    code, page, _ = render(
        "{{ include('parts/raw.md') }}{% include 'parts/raw.md' %}"
        "{% import 'macros.md' as m %}{{ m.twice(4) }}{{ include(name) if name is defined }}"
    )
    assert (code, page) == (0, "{{ 1 + 1 }}\n2\n8")


def test_a_page_can_be_checked_without_results(render, tmp_path):
    text = "{{ measure('goodput(1)', 'tiny/one/10ms') }}, {{ claim('tiny/full') }}\n{{ kinds() }}\n"
    assert render(text, "--record")[0] == 0
    kept = json.loads((tmp_path / "out/page.answers.json").read_text())
    assert list(kept) == ['measure("goodput(1)", "tiny/one/10ms")', 'claim("tiny/full")']
    assert render(text, "--check")[0] == 0
    page = tmp_path / "out/page.md"
    page.write_text(page.read_text().replace("Mbit/s", "kbit/s", 1))
    code, _, err = render(text, "--check")
    assert (code, err.strip()) == (1, "out/page.md:1: differs from in/page.md; render it again")
    code, _, err = render(text + "{{ run_count() }}", "--check")
    assert code == 1
    assert "in/page.md:3: no recorded value for run_count(); render it again" in err
    code, _, err = render("none", "--check")
    assert (code, 'no longer uses claim("tiny/full")' in err) == (1, True)


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ('{"a":' * 5000 + "1" + "}" * 5000, "nested too deeply"),
        ('{"a":' + "[" * 500 + "]" * 500 + "}", "nested too deeply; expected at most 100"),
        ("[]", "Expected `object`, got `array`"),
        ('{"a": NaN}', "invalid JSON"),
        ('{"a": "\\ud800"}', "invalid JSON"),
        ("", "invalid JSON"),
    ],
)
def test_answers_that_are_none_are_refused(render, tmp_path, kept, said):
    assert render("{{ run_count() }}", "--record")[0] == 0
    (tmp_path / "out/page.answers.json").write_text(kept)
    code, _, err = render("{{ run_count() }}", "--check")
    assert code == 2
    assert err.startswith(f"bakeoff: out/page.answers.json: {said}")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("\n{{ plot('tiny/one/10mss') }}", 2, "no run 'tiny/one/10mss'"),
        ("{{ plot('tiny/one/10ms', 'bar') }}", 1, "plot kind: unknown 'bar'"),
        ("{{ plot('tiny/one/10ms', knid='bars') }}", 1, "plot: knid: Unexpected keyword argument"),
        ("{{ plot('tiny/one/10ms', format='exe') }}", 1, "format: 'exe'; expected png or svg"),
        ("\n\n{{ plot('tiny/one/10ms', 'call') }}", 3, "no call"),
        ("{{ plot('tiny/one/10ms', name='x') }}{{ plot('tiny/one/40ms', name='x') }}", 1, "duplicate picture name"),
        ("{{ plot({'a': 'tiny/one/10ms'}, 'bars') }}", 1, "draws a campaign; expected runs without labels"),
        ("{{ plot('tiny/one/10ms', seed=4) }}", 1, "no repetition with seed 4; expected one of: 1, 2, 3"),
        ("{{ measure('goodputt(1)', 'tiny/one/10ms') }}", 1, "unknown measure 'goodputt'; did you mean 'goodput'?"),
        ("{{ measure('goodput(3)', 'tiny/one/10ms') }}", 1, "no flow 3; expected at most 2"),
        (
            "{{ measure('goodput(1)', 'tiny/one/10ms', reference='none') }}",
            1,
            "reference: unknown 'none'; expected one of:",
        ),
        ("{{ measure('goodput(1)', 'tiny/one/40ms', reference='kernel') }}", 1, "'kernel' has no 'goodput(1)' of tiny"),
        (
            "{{ measure('jain()', 'tiny/one/10ms', reference='kernel') }}",
            1,
            "'jain()' with a reference; expected deliv",
        ),
        (
            "{{ dots({'a': {'x': 'tiny/one/10ms'}}, 'jain()', " + LOOKS + ") }}",
            1,
            "'x': unknown look; expected one of: ours,",
        ),
        ("{{ dots({}, 'jain()', " + LOOKS + ") }}", 1, "0 dots; expected 1 to 60"),
        ("{{ dots({'a': {'ours': {'runs': 'x'}}}, 'jain()', " + LOOKS + ") }}", 1, "expected a run, or a mapping with"),
        (
            "{{ dots({'a': {'ours': 'tiny/one/10ms'}}, '1 < jain()', " + LOOKS + ") }}",
            1,
            "is true or false; expected a",
        ),
        (
            "{{ dots({}, 'jain()', " + LOOKS.replace("black", "dotted") + ") }}",
            1,
            "look: 'dotted hollow'; expected one",
        ),
        ("{{ measure('goodput(1)', 'tiny/one/*') }}", 1, "matches 2 runs, such as tiny/one/10ms"),
        ("{{ measure('goodput(1)', 'tiny/one/10ms', unit='ms') }}", 1, "has no unit 'ms'; expected one of bit"),
        ("{{ measure(1, 'tiny/one/10ms') }}", 1, "should be a valid string"),
        ("{{ table('tiny/one/*', columns=['jian']) }}", 1, "columns: no column 'jian'; did you mean 'jain'?"),
        ("{{ claim('tiny/fulll') }}", 1, "'tiny/fulll': no such claim; expected for example 'tiny/full'"),
        ("{{ claim('tiny/full', 'wrong') }}", 1, "no part 'wrong'; expected one of claim, where"),
        ("{{ plt() }}", 1, "'plt' is undefined; did you mean 'plot'?"),
        ("{{ measure(x, 'tiny/one/10ms') }}", 1, "'x' is undefined"),
        ("text\n{% for %}", 2, "Expected"),
        ("{{ 1 | nosuch }}", 1, "No filter named 'nosuch'"),
        ("{{ [1] | random }}", 1, "No filter named 'random'"),
        ("{{ runs()[7] }}", 1, "has no element 7"),
        ("{{ 1 / 0 }}", 1, "division by zero"),
    ],
)
def test_what_is_missing_or_wrong_is_named_with_its_line(answers, tmp_path, text, line, said):
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(BakeoffError) as error:
        rendered(tmp_path / "page.md", answers.functions())
    assert str(error.value).startswith(f"{tmp_path}/page.md:{line}: ")
    assert said in str(error.value)


def test_a_claim_whose_runs_are_not_all_there_is_not_decided(answers, done, tmp_path):
    few = FinishedRuns([done / "runs/tiny/one/10ms"])
    (tmp_path / "page.md").write_text("\n{{ claim('tiny/longer') }}")
    with pytest.raises(BakeoffError) as error:
        rendered(tmp_path / "page.md", Functions(few, Verdicts(few, 3, 1), Pictures("page")).functions())
    # Of two runs with three seeds each, one result is there.
    assert f"page.md:2: no run 'tiny/one/10ms~seed2' and 4 more in {done}/runs/tiny/one/10ms" in str(error.value)
    assert "do the missing runs with 'bakeoff verify'" in str(error.value)


def test_nothing_is_written_if_the_last_line_is_wrong(render, tmp_path):
    code, page, err = render("{{ plot('tiny/one/10ms') }}\n{{ plot('tiny/one/20ms') }}", "--record")
    assert (code, page) == (2, None)
    assert err.startswith("bakeoff: in/page.md:2: no run 'tiny/one/20ms' in ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--results", "nowhere"], "nowhere: no such results folder"),
        (["--record"], "--record: needs --out"),
        (["--out", "in/"], "the page would overwrite its template in/"),
        (["in/no.md", "--out", "out/"], "in/no.md: no such template"),
        (["in/other/page.md", "--out", "out/"], "--out: duplicate template name"),
        (["--out", "out"], "--out: 'out' is ambiguous; expected 'out.md'"),
        (["in/other/page.md", "--out", "out"], "'out' is a file, but there are 2 templates"),
        (["--out", "out/", "--check"], "out/page.answers.json: cannot be read: No such file or directory"),
    ],
)
def test_wrong_options_are_refused(cli, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    Path("in/other").mkdir(parents=True)
    for name in ("in/page.md", "in/other/page.md"):
        Path(name).write_text("text\n")
    code, _, err = cli("render", "in/page.md", *options)
    assert (code, said in err, Path("out").exists()) == (2, True, False)


def test_a_file_where_the_page_s_folder_should_be_is_named(tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(BakeoffError, match=r"/notes: a file; expected a folder for page\.md$"):
        write({tmp_path / "notes/page.md": Page("text\n")})
    assert (tmp_path / "notes").read_text() == "mine"


HOSTILE = {
    "{{ include('/etc/passwd') }}": "'/etc/passwd' is outside the template's folder",
    "{{ include('../secret') }}": "'../secret' is outside the template's folder",
    "{{ include('inside/../../secret') }}": "is outside the template's folder",
    "{% include '../secret' %}": "'../secret' is outside the template's folder",
    "{% import '/etc/passwd' as x %}": "is outside the template's folder",
    "{{ include('link') }}": "'link' is outside the template's folder",
    "{{ include('pipe') }}": "'pipe' cannot be read: is not a regular file",
    "{{ include('large') }}": "'large' cannot be read: is 1,048,577 bytes",
    "{{ include('binary') }}": "'binary' is not UTF-8",
    "{{ source('/etc/passwd') }}": "'source' is undefined",
    "{% for i in range(10**12) %}{% endfor %}": "a range of more than 100,000 numbers",
    "{{ 10**9999 }}": "a number of more than 4096 bits",
    "{% set n = namespace(x=2) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}": "more than 4096 bits",
    "{{ ''.__class__.__mro__ }}": "access to attribute '__class__' of 'str' object is unsafe",
    "{{ plot.__globals__ }}": "access to attribute '__globals__'",
    "{{ ''['__class__'] }}": "'__class__'",
    "{{ '{0.__class__}'.format(1) }}": "'__class__' of 'int' object is unsafe",
    "{{ cycler.__init__.__globals__.os.system('true') }}": "'__init__'",
    "{{ (1).__reduce__() }}": "'__reduce__'",
    "{{ [].append(1) }}": "access to attribute 'append' of 'list' object is unsafe",
    "{{ 'a' * 10**10 }}": "more than 512 MiB of memory",
    "{{ '%99999999999d' | format(1) }}": "in/page.md:2: ",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}": "nested too deeply",
    "{% include 'page.md' %}": "nested too deeply",
    "{% for i in range(99999) %}{{ 'x' * 100 }}{% endfor %}": "more than 4,194,304 characters",
    "{{ " + "(" * 9999 + " }}": "nested too deeply",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}": "more than 2 s of processor time",
    "{% for i in range(9999) %}{{ runs('tiny/' ~ '*' * i) }}{% endfor %}": "more than 5,000 calls of functions",
    "{{ 'a'.encode('cp1252') }}": "a module that templates do not have; available codecs: utf-8",
    "{{ 'a'.encode('rot13') }}": "a module that templates do not have; available codecs: utf-8",
    "{% set n = namespace(x=1) %}{% for i in range(200) %}{% set n.x = [n.x] %}{% endfor %}{{ runs(n.x) }}":
        "runs: its arguments are nested too deeply",
    "{% set n = namespace(x=1) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}{{ runs(n.x) }}":
        "nested too deeply",
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_template_gets_one_message_and_nothing_else(tmp_path, text):
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "in/link").symlink_to(tmp_path / "secret")
    (tmp_path / "in/large").write_bytes(b" " * (1_048_576 + 1))
    (tmp_path / "in/binary").write_bytes(b"\xff")
    os.mkfifo(tmp_path / "in/pipe")
    page = tmp_path / "in/page.md"
    page.write_text("first line\n" + text)
    with pytest.raises(BakeoffError) as error:
        rendered(page, {"runs": lambda *_: [], "plot": lambda *_: ""})
    said = str(error.value)
    # Where the compiler's own stack ends, no line is known.
    assert said.startswith(f"{page}:{1 if '((' in text else 2}: ")
    assert HOSTILE[text] in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{{ '<b>5 &lt; 6</b>' | striptags }}", "5 < 6"),
        ("{{ {'a': [1, 2]} | pprint }}", "{'a': [1, 2]}"),
        ("{{ 'é'.encode('idna') }}", "b'xn--9ca'"),
        ("{{ 'é'.encode('utf-16-le') }}", r"b'\xe9\x00'"),
        ('{{ "\\N{BULLET}" }}', "•"),
        ("{{ 1e400 }} {{ -1e400 }} {{ runs(1e400 - 1e400) }}", "inf -inf ['nan']"),
    ],
)
def test_what_is_loaded_late_is_there(tmp_path, text, shown):
    (tmp_path / "page.md").write_text(text)
    assert rendered(tmp_path / "page.md", {"runs": lambda what: [str(what)]}).text == shown


def test_the_process_of_a_template_opens_no_file_and_starts_no_program(tmp_path):
    """As if somebody had broken out of Jinja2's sandbox: `_bound` holds for whatever Python does then."""
    script = (
        "import os, subprocess, socket\nfrom bakeoff.render import sandbox\nsandbox._bound()\n"
        "def tried(what):\n    try:\n        what()\n    except OSError as error:\n        return error.errno\n"
        "print(tried(lambda: open('/etc/passwd')), tried(socket.socket), tried(lambda: subprocess.run(['true'])))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == [str(errno.EMFILE)] * 3


def test_the_example_of_the_page_works(cli, tmp_path, monkeypatch):
    text = (ROOT / "docs/render.md").read_text(encoding="utf-8")
    template, commands = re.findall(r"```\n(.*?)```", text, re.DOTALL)[:2]
    monkeypatch.chdir(tmp_path)
    Path("question.md").write_text(template)
    for line in commands.splitlines():
        assert cli(*shlex.split(line)[1:])[0] == 0
    page = Path("page/question.md").read_text()
    rates = re.search(r"Prague gets ([0-9.]+) Mbit/s, and CUBIC ([0-9.]+) Mbit/s", page)
    # The line has 50 Mbit/s, of which 1448 of 1514 bytes are payload: 47.8.
    assert 45 < float(rates[1]) + float(rates[2]) < 47.9
    [picture] = Path("page/question").iterdir()
    assert f"(question/{picture.name})" in page
    assert "2 results" in page
