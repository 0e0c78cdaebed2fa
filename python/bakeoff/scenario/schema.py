"""The JSON Schema of scenario files, for editors."""

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from bakeoff.scenario.language import Document
from bakeoff.scenario.network import Model

_PLACEHOLDER = {
    "type": "string",
    "pattern": r"\{[A-Za-z_][^{}]*\}",
    "description": "A placeholder of an axis: {axis} or {axis.field}.",
}


def json_schema() -> dict[str, Any]:
    """Draft 2020-12. Wherever a value may stand, a placeholder may stand too."""
    schema = Document.model_json_schema(mode="validation")
    definitions = schema.pop("$defs")
    forms = {form.__name__: form for form in _below(Model)}
    for name, part in ((Document.__name__, schema), *definitions.items()):
        described = _descriptions(forms[name]) if name in forms else {}
        for key, field in part.get("properties", {}).items():
            part["properties"][key] = _or_placeholder(field | described.get(key, {}))
    definitions["placeholder"] = _PLACEHOLDER
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:bakeoff:scenario:1",
        **schema,
        "title": "bakeoff scenario",
        # the name of the file stands in for `scenario`; a profile may hold the rest
        "required": [],
        "$defs": dict(sorted(definitions.items())),
    }


def _below(form: type[Model]) -> Iterator[type[Model]]:
    for each in form.__subclasses__():
        yield each
        yield from _below(each)


def _descriptions(form: type[Model]) -> dict[str, dict[str, str]]:
    """What stands below each key of a mapping in its class, and in those that it is derived from.

    pydantic finds the same with `use_attribute_docstrings`, but whenever the classes are made, as every command does.
    """
    keys = {name: field.alias or name for name, field in form.model_fields.items()}
    return {
        keys[name]: {"description": text}
        for each in reversed(form.__mro__)
        if issubclass(each, Model)
        for name, text in _docstrings(each.__module__).get(each.__name__, {}).items()
        if name in keys
    }


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """The text below each attribute of each class of a module."""
    return {
        node.name: {
            field.target.id: inspect.cleandoc(text.value.value)
            for field, text in pairwise(node.body)
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        }
        for node in ast.parse(inspect.getsource(sys.modules[module])).body
        if isinstance(node, ast.ClassDef)
    }


def _or_placeholder(field: dict[str, Any]) -> dict[str, Any]:
    outer = {key: value for key, value in field.items() if key in ("description", "default", "title")}
    inner = {key: value for key, value in field.items() if key not in outer}
    choices = inner["anyOf"] if set(inner) == {"anyOf"} else [inner]
    return {**outer, "anyOf": [*map(_with_placeholders_inside, choices), {"$ref": "#/$defs/placeholder"}]}


def _with_placeholders_inside(choice: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _or_placeholder(value) if key in ("items", "additionalProperties") and isinstance(value, dict) else value
        for key, value in choice.items()
    }
