"""The JSON Schema of scenario files, for editors."""

import ast
import inspect
from itertools import pairwise
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import ModelSchema

from bakeoff.scenario.language import Document
from bakeoff.scenario.network import Model

_PLACEHOLDER = {
    "type": "string",
    "pattern": r"\{[A-Za-z_][^{}]*\}",
    "description": "A placeholder of an axis: {axis} or {axis.field}.",
}


class Described(GenerateJsonSchema):
    """A schema that has the text below each field as its description.

    Pydantic can read these texts when it makes a model, but that takes each process longer than a short run.
    """

    def model_schema(self, schema: ModelSchema) -> dict[str, Any]:
        """The schema of one model."""
        found = super().model_schema(schema)
        for name, what in _described(schema["cls"]).items():
            found["properties"][name]["description"] = what
        return found


def json_schema() -> dict[str, Any]:
    """Draft 2020-12. Wherever a value may stand, a placeholder may stand too."""
    schema = Document.model_json_schema(mode="validation", schema_generator=Described)
    definitions = schema.pop("$defs")
    for part in (schema, *definitions.values()):
        for name, field in part.get("properties", {}).items():
            part["properties"][name] = _or_placeholder(field)
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


def _described(form: type[Model]) -> dict[str, str]:
    """What the text below a field says of it, by the field's key."""
    found = {}
    for base in (each for each in reversed(form.__mro__) if issubclass(each, Model)):
        [class_] = ast.parse(inspect.getsource(base)).body
        assert isinstance(class_, ast.ClassDef)
        for field, below in pairwise(class_.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[form.model_fields[name].alias or name] = inspect.cleandoc(text)
    return found
