"""The JSON Schema of scenario files, for editors."""

from typing import Any

from bakeoff.scenario.language import Document

_PLACEHOLDER = {
    "type": "string",
    "pattern": r"\{[A-Za-z_][^{}]*\}",
    "description": "A placeholder of an axis: {axis} or {axis.field}.",
}


def json_schema() -> dict[str, Any]:
    """Draft 2020-12. Wherever a value may stand, a placeholder may stand too."""
    schema = Document.model_json_schema(mode="validation")
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
