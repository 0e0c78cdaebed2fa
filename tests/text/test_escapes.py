"""Texts of others in Markdown, LaTeX and the terminal's markup: each shows as it is, and does nothing else."""

import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bakeoff.text import columns, markdown, markup
from bakeoff.text.columns import Column, clean
from bakeoff.text.markdown import Markdown, code, escaped, joined, label, paragraph, pipes

parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable(["table", "strikethrough"])

ODD = st.text("\\`*_[]()<>&;|~$#!+-=.:/\"'{}^% ab1ltm\n\x1b", max_size=24)
LINKS = ["[click](javascript:alert(1))", "![x](http://a/b)", "[a]: http://x", "<http://x>", "a\\|b", "&lt;b&gt;", "``"]


def shown(text):
    """The words that a reader of the Markdown sees, line by line, and the kinds of everything that is no text."""
    words, kinds = [], set()
    for token in parser.parse(text):
        kinds.add(token.type)
        for inner in token.children or ():
            kinds.add(inner.type)
            words.append(inner.content)
    return "".join(words), kinds - {"inline", "text", "paragraph_open", "paragraph_close", "text_special"}


def spaced(text):
    """What HTML makes of spaces."""
    return " ".join(clean(text).split())


TABLE = {f"{part}_{end}" for part in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")}


@given(ODD)
@example("[click](javascript:alert(1))")
@example("a\\|b")
@example("&amp;lt;")
@example("\\")
def test_a_cell_of_a_table_shows_as_it_is(text):
    found, kinds = shown(pipes(["head"], [True], [[text]]))
    assert spaced(found.removeprefix("head")) == spaced(text)
    assert kinds == TABLE


@given(ODD)
@example("# x")
@example("> x")
@example("- x")
@example("1. x")
@example("+")
@example("===")
@example("    code")
def test_a_paragraph_and_an_entry_show_as_they_are(text):
    for begin, around in (
        ("", set()),
        ("- ", {"bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"}),
    ):
        found, kinds = shown(f"{begin}{paragraph(text)}\n")
        assert spaced(found) == spaced(text)
        assert kinds <= around


@given(ODD)
@example("]")
@example("\\")
def test_the_words_of_a_link_show_as_they_are(text):
    found, kinds = shown(f"x[{label(text)}](there)")
    assert spaced(found) == spaced(f"x{label('')}{' '.join(text.split())}")
    assert kinds == {"link_open", "link_close"}


@given(ODD)
@example("`")
@example("a`` b")
@example("\\|")
@example("|\\")
def test_code_shows_as_it_is(text):
    if not text.strip():
        return
    found, kinds = shown(f"x{code(text)}x")
    assert spaced(found.removeprefix("x").removesuffix("x")) == spaced(text)
    assert kinds == {"code_inline"}
    cells, kinds = shown(pipes(["head"], [True], [[code(text)]]))
    assert spaced(cells.removeprefix("head")) == spaced(text)
    assert kinds == TABLE | {"code_inline"}


def test_what_is_markdown_already_stays():
    assert escaped(Markdown("**a** [b](c)")) == "**a** [b](c)"
    assert joined([code("a*b"), "2*3"]) == "`a*b` 2\\*3"
    assert pipes(["h"], [True], [[Markdown("`a|b`")]]).splitlines()[2] == "| `a\\|b` |"


def test_names_of_runs_and_qdiscs_are_as_they_were():
    for name in ("fq_codel(1q)", "ns-prague-vs-cubic_50Mbit-20ms", "mid>srv", "-0.50", "+1.2 %", "a/b.c", "10 > 5"):
        assert escaped(name) == name


@pytest.mark.parametrize("text", [*LINKS, "[red]x[/red]", "[/]", "[bold", ":100:", ":b:", "\\[x]"])
def test_a_terminal_shows_markup_and_emoji_codes_as_they_are(text):
    block = markup.Block(text, [Column(text, [text], text=True)], [text])
    said = markup.terminal([block], [text], 100, False)
    assert said.count(text) == 5


@pytest.mark.parametrize("text", [*LINKS, "[red]x[/red]", ":100:"])
def test_a_page_of_html_shows_them_as_they_are(text):
    page = markup.html_page([markup.Block(text, [Column("h", [text])], [text])], [text])
    assert not re.search(r"<(?!/?(html|meta|title|style|h2|table|thead|tbody|tr|th|td|p|ul|li|!doctype)\b)", page)


def test_latex_has_no_bare_bracket_quote_or_backtick():
    block = markup.Block("a", [Column("h", ["[x]", "`y`", '"z"', "a--b", "\\input{/etc/passwd}"], text=True)])
    rows = markup.latex([block], []).split("\\midrule\n")[1].split("\\bottomrule")[0].splitlines()
    assert rows == [
        r"{[}x{]} \\",
        r"\textasciigrave{}y\textasciigrave{} \\",
        r"{\char34}z{\char34} \\",
        r"a-{}-b \\",
        r"\textbackslash{}input\{/etc/passwd\} \\",
    ]


def test_all_tables_of_markdown_come_from_one_function():
    block = markup.Block("a", [Column("h", ["[x](y)"], text=True)], ["[c](d)"])
    assert markup.markdown([block], ["[r](s)"]).count("\\[") == 3
    assert markup.pipes is markdown.pipes


def test_a_console_writes_into_its_buffer_without_markup():
    drawing, out = columns.console(80, False)
    assert isinstance(out, io.StringIO)
    drawing.print("[red]x[/red] :100:")
    assert columns.text_of(out) == "[red]x[/red] :100:\n"
