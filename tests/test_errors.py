"""The tree of exceptions."""

import ast
import pickle
from pathlib import Path

import pytest

from bakeoff import errors, results
from bakeoff.errors import BakeoffError, HalfWrittenError, RefusedError, RunError, UnreachableError

PACKAGE = Path(errors.__file__).parent
CLASSES = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, BakeoffError)]


def test_the_docstring_draws_every_class_below_its_base():
    drawn, above = {}, [""]
    for line in (errors.__doc__ or "").splitlines():
        words = line.replace(",", "").split()
        names = [word for word in words if word.endswith("Error") and word != "RuntimeError"]
        if not names:
            continue
        depth = line.index(names[0]) // 4
        drawn |= dict.fromkeys(names, above[depth - 1] if depth else "Exception")
        above[depth:] = [names[0]]
    assert drawn == {each.__name__: each.__bases__[0].__name__ for each in CLASSES}


@pytest.mark.parametrize("kind", CLASSES)
def test_another_process_gets_the_whole_exception(kind):
    sent = pickle.loads(pickle.dumps(kind("cannot be read", place="a.json").at("mine.yaml")))
    assert (str(sent), sent.place, sent.problem) == (
        "mine.yaml: a.json: cannot be read", "mine.yaml", "a.json: cannot be read"
    )  # fmt: skip
    assert type(sent) is kind


def test_a_place_in_front_leaves_the_class():
    assert type(UnreachableError("no answer").at("m1")) is UnreachableError
    assert (RefusedError("no").place, RefusedError("no").problem, str(RefusedError("no"))) == ("", "no", "no")


def test_a_failed_run_is_a_runtime_error():
    with pytest.raises(RuntimeError, match=r"^s/s/r: conservation$"):
        raise RunError("conservation", place="s/s/r")


def test_a_half_written_folder_has_its_own_exception(tmp_path):
    with pytest.raises(HalfWrittenError) as caught:
        results.read(tmp_path)
    assert (caught.value.place, caught.value.problem) == (f"{tmp_path}: half-written", "run.json is missing")


def test_no_exception_without_a_name_is_raised():
    """Those of replay_guest.py never leave the guest, which has no bakeoff."""
    wrong = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "replay_guest.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
        and node.exc.func.id in ("BakeoffError", "RuntimeError", "Exception")
    ]
    assert wrong == []
