"""Every command line in the help, README, CONTRIBUTING and docs is one that works today.

Each is parsed by the command line itself, so that its options and arguments exist. What chooses runs (`list`, `show`,
`run`) is expanded and has to name some; what a duel asks for is made and checked by its engine, if that is the
simulator. Nothing is run, so the folders, kernels and machines that an example names need not be here: `mine.yaml` and
its like are files of the reader's own, and a small one stands in for them.
"""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
import typer

from bakeoff import engines
from bakeoff.cli.app import app
from bakeoff.duels import Duel
from bakeoff.scenario import catalog, parse_settings
from bakeoff.scenario.duel_runs import duels

ROOT = Path(__file__).parent.parent
# The tutorials are run as a whole (test_tutorials.py).
DOCS = [page for page in sorted(ROOT.glob("docs/**/*.md")) if page.parent.name != "tutorials"]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS]
COMMAND = typer.main.get_command(app)
OWN = """
duration: 5s
network: {path: [a, m, b], rtt: 20ms, bottleneck: {rate: 10mbit, qdisc: "{qdisc}"}}
flows: [{name: a, cc: cubic}, {name: b, cc: reno}]
vary: {qdisc: {pie: pie ecn, fq_codel: fq_codel}}
"""
OWN_CC = "class MyCC:\n    pass\n"
RECIPES = {"scalable", "pfifo_head_drop", "epoch"}
PLACEHOLDER = re.compile(r"…|\.\.\.|\b[A-Z]{3,}[A-Z_]*\b|\[")
"""What a reader has to fill in: `bakeoff COMMAND --help`, `SUITE/NAME`."""


def helps(command=COMMAND, words=("bakeoff",)):
    """(where, line) of all examples in the help of all commands."""
    for line in (command.help or "").splitlines():
        if line.strip().startswith("bakeoff "):
            yield f"{' '.join(words)} --help", line.strip()
    for name, inner in getattr(command, "commands", {}).items():
        yield from helps(inner, (*words, name))


def pages():
    """(where, line) of all command lines in the pages: in blocks, and between backquotes in the text."""
    for page in PAGES:
        block = False
        for number, text in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            line = text.strip()
            if line.startswith("```"):
                block = not block
            found = [line] if block else re.findall(r"`([^`]+)`", line)
            for each in found:
                for part in re.split(r"\s*(?:&&|;)\s+", each):
                    if re.match(r"(\$ )?(\.venv/bin/)?bakeoff [a-z*]", part):
                        yield f"{page.relative_to(ROOT)}:{number}", part[part.index("bakeoff ") :]


def words_of(line):
    """The words after `bakeoff`, without what the shell or a reader of the page takes."""
    for gap in re.finditer(r"\s{2,}|\s+# |\s[|>&]|\s2>", line):
        if line[: gap.start()].count("'") % 2 == 0 and line[: gap.start()].count('"') % 2 == 0:
            line = line[: gap.start()]
            break
    return shlex.split(line)[1:]


EXAMPLES = {tuple(words_of(line)): f"{where}: {line}" for where, line in [*pages(), *helps()]}


@pytest.fixture(autouse=True)
def own_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")
    Path("mycc.py").write_text(OWN_CC)
    for name in ("mine.yaml", "my.yaml", "x.yaml"):
        Path(name).write_text(OWN)


def parsed(words):
    """The innermost command's name and its parameters; typer says what it does not know."""
    command, names = COMMAND, []
    context = command.context_class(command, info_name="bakeoff")
    while hasattr(command, "commands"):
        if words[0].startswith("-"):
            return names, {}
        name, command, words = command.resolve_command(context, words)
        names.append(name)
        context = command.context_class(command, info_name=name, parent=context)
    if "--help" in words:
        return names, {}
    return names, command.make_context(names[-1], list(words), parent=context).params


def test_examples_are_found():
    assert len(EXAMPLES) > 60
    assert ("duel", "prague", "cubic", "--qdisc", "fq_codel flows 1", "--rate", "50mbit", "--rtt", "20ms") in EXAMPLES
    assert words_of("bakeoff run 'a | b' --set x=1 | jq .  # why") == ["run", "a | b", "--set", "x=1"]
    assert words_of("bakeoff run 'l4s-tests/s1-*' --resume       go on 'there'") == [
        "run",
        "l4s-tests/s1-*",
        "--resume",
    ]


# Without those in which the reader has to fill something in, and those that a recipe of CONTRIBUTING makes first.
CALLS = [
    words
    for words in sorted(EXAMPLES)
    if not any(PLACEHOLDER.search(word) for word in words) and not RECIPES.intersection(" ".join(words).split())
]


@pytest.mark.parametrize("words", CALLS, ids=lambda words: EXAMPLES[words])
def test_an_example_works(words):
    try:
        names, params = parsed(list(words))
    except typer.Exit:
        return  # it would have been done by now, as --list-kinds is
    except Exception as error:
        if type(error).__name__ == "MissingParameter" and "help" not in EXAMPLES[words] and len(words) < 3:
            return  # it names a command and calls none
        raise
    if names[-1] in ("list", "show", "run") and (patterns := params.get("patterns") or params.get("pattern")):
        # All runs of the catalog are expanded by its own tests.
        patterns = [patterns] if isinstance(patterns, str) else list(patterns)
        assert catalog.select(patterns, only=params["only"], settings=parse_settings(params["set_"] or ()))
    elif names[-1] == "duel":
        every = Duel(**{part.name: params[part.name] for part in fields(Duel)})
        for run in duels(every):
            if params["engine"] == "sim" and "mycc" not in run.flows[0].cc:
                engines.get("sim").check(run)
