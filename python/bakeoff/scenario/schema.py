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
    required = [key for key in schema["required"] if key != "scenario"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:bakeoff:scenario:1",
        **schema,
        "title": "bakeoff scenario",
        "required": required,
        "$defs": dict(sorted(definitions.items())),
    }


def _or_placeholder(field: dict[str, Any]) -> dict[str, Any]:
    if field.get("type") == "string" and "pattern" not in field and "enum" not in field:
        return field
    outer: dict[str, Any] = {key: field.pop(key) for key in ("description", "default", "title") if key in field}
    return {
        **outer,
        "anyOf": [*(field["anyOf"] if set(field) == {"anyOf"} else [field]), {"$ref": "#/$defs/placeholder"}],
    }
