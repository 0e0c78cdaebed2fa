"""The packages of python/bakeoff have one order: each imports only from those before it."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "python" / "bakeoff"

ORDER = (
    "errors",
    "arguments",
    "files",
    "text",
    "jsonfile",
    "lockfile",
    "version",
    "data",
    "duels",
    "extension",
    "_sim",
    "tc",
    "scenario",
    "results",
    "engines",
    "crate",
    "measure",
    "campaign",
    "imports",
    "references",
    "expressions",
    "claims",
    "tables",
    "advice",
    "plots",
    "exports",
    "evaluation",
    "render",
    "site",
    "captures",
    "cc",
    "replay",
    "doctor",
    "api",
    "__init__",
    "cli",
    "__main__",
)
"""Lowest first. A campaign stands above the engines that it calls and the measures that it has taken of each run."""


def package(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(text: str) -> list[tuple[int, str]]:
    """The packages that a module imports from, with the line; also inside of functions and for types only."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "bakeoff":
            names = [f"bakeoff.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        else:
            continue
        for name in names:
            package, _, inside = name.partition(".")
            if package == "bakeoff":
                found.append((node.lineno, inside.split(".")[0] or "__init__"))
            assert package, f"line {node.lineno}: a relative import; expected the whole name"
    return found


def backward(text: str, of: str) -> list[tuple[int, str]]:
    return [(line, name) for line, name in imported(text) if ORDER.index(name) > ORDER.index(of)]


def test_no_package_imports_from_one_after_it():
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}: {package(path)} imports {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, name in backward(path.read_text(encoding="utf-8"), package(path))
    ]
    assert wrong == []


def test_every_package_has_a_place_in_the_order():
    packages = {package(path) for path in PACKAGE.rglob("*.py")} | {"_sim"}
    assert packages == set(ORDER)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from bakeoff import tables", [(1, "tables")]),
        ("import bakeoff", [(1, "__init__")]),
        ("def f():\n    from bakeoff.cli.run import execute", [(2, "cli")]),
        ("if TYPE_CHECKING:\n    from bakeoff.campaign import Done", [(2, "campaign")]),
        ("from bakeoff.results import read\nfrom bakeoff import errors", []),
    ],
)
def test_a_backward_import_is_seen(text, found):
    assert backward(text, "measure") == found
