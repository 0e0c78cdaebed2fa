"""The resolved run is the same document in Rust, which reads it, and in Python, which writes it.

`crates/document/schema.json` is made from the Rust types, and `cargo test -p bakeoff-document --features schema` fails
if it is not up to date. Pydantic makes a schema of its model. Both are reduced to what they say of each place.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bakeoff.scenario.run import Run

RUST = json.loads((Path(__file__).parents[2] / "crates" / "document" / "schema.json").read_text())
MACHINE = {
    "uint32": {"minimum": 0, "maximum": 2**32 - 1},
    "uint64": {"minimum": 0, "maximum": 2**64 - 1},
    "int64": {"minimum": -(2**63), "maximum": 2**63 - 1},
}
EMPTY = {"array": [], "object": {}}
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def places(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a schema says of each place of the document, such as `flows[].source<rate>.rate_bps`."""
    return dict(_places(schema, schema["$defs"], "", ()))


def _places(schema: Any, named: dict[str, Any], at: str, within: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    choices = [choice for choice in _choices(schema, named) if choice.get("type") != "null"]
    for choice in choices:
        name = choice.get("$ref", "")
        if name in within:
            continue
        form = _resolved(choice, named)
        inside = (*within, name) if name else within
        tag = form.get("properties", {}).get("kind", {}).get("const")
        here = f"{at}<{tag}>" if tag else at
        if form.get("type") == "object":
            yield from _object(form, named, here, inside)
        for index, item in enumerate(_items(form)):
            yield f"{here}[{index}]", _said(item, named)
            yield from _places(item, named, f"{here}[{index}]", inside)


def _object(form: dict[str, Any], named: dict[str, Any], at: str, within: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    others = form.get("additionalProperties", True)
    yield f"{at}{{}}", _said(others, named) if isinstance(others, dict) else others
    if isinstance(others, dict):
        yield from _places(others, named, f"{at}{{}}", within)
    required = form.get("required", [])
    for key, value in form.get("properties", {}).items():
        # A constant (the tag of a union, the document's format) is always written, and so has no use for a default.
        needed = key in required or "const" in value
        default = {} if needed else {"default": _default(value, named)}
        yield f"{at}.{key}", _said(value, named) | {"required": needed} | default
        yield from _places(value, named, f"{at}.{key}", within)


def _choices(schema: Any, named: dict[str, Any]) -> list[dict[str, Any]]:
    """The forms that a value may have."""
    if not isinstance(schema, dict):
        return [{}]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return [each for choice in schema[key] for each in _choices(choice, named)]
    if "$ref" in schema and {"anyOf", "oneOf"} & _resolved(schema, named).keys():
        return _choices(_resolved(schema, named), named)
    if isinstance(schema.get("type"), list):
        return [{**schema, "type": kind} if kind != "null" else {"type": kind} for kind in schema["type"]]
    return [schema]


def _resolved(schema: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    return named[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


def _items(form: dict[str, Any]) -> list[Any]:
    """Of a list: the schema of each item, or of all."""
    if "prefixItems" in form:
        return form["prefixItems"]
    if "items" not in form:
        return []
    return [form["items"]] * form.get("maxItems", 1)


def _said(schema: Any, named: dict[str, Any]) -> dict[str, Any]:
    """Types, words, lengths and bounds."""
    said = [_simple(_resolved(choice, named)) for choice in _choices(schema, named)]
    words = sorted(word for each in said for word in each.get("words", []))
    forms = {json.dumps(each, sort_keys=True) for each in said if "words" not in each}
    return {"forms": sorted(forms), "words": words}


def _simple(form: dict[str, Any]) -> dict[str, Any]:
    words = [form["const"]] if "const" in form else form.get("enum")
    if words is not None:
        return {"words": [word for word in words if word is not None]}
    simple = {key: form[key] for key in ("type", "minItems", "maxItems") if key in form}
    bounds = MACHINE.get(form.get("format", ""), {}) | {key: form[key] for key in BOUNDS if key in form}
    if form.get("type") == "integer" and "exclusiveMaximum" in bounds:
        bounds["maximum"] = bounds.pop("exclusiveMaximum") - 1
    return simple | {key: int(bound) if form["type"] == "integer" else float(bound) for key, bound in bounds.items()}


def _default(value: dict[str, Any], named: dict[str, Any]) -> Any:
    """What an absent key stands for: an empty list or table, or null, where the schema leaves that out."""
    forms = [_resolved(choice, named) for choice in _choices(value, named)]
    if "default" in value or any(form.get("type") == "null" for form in forms):
        return value.get("default")
    return EMPTY[forms[0]["type"]]


def test_python_writes_the_document_that_rust_reads():
    rust, python = places(RUST), places(Run.model_json_schema())
    assert sorted(rust) == sorted(python)
    assert {place: (said, python[place]) for place, said in rust.items() if said != python[place]} == {}
    # All of it is compared: through unions, lists, tables and parts of parts.
    assert {".flows[0].source<short>.objects[0][1]", ".links[0].loss{}", ".programs[0].exit"} <= rust.keys()
    assert ".interfaces[0].egress.classes[0].filters[0].dscp" in rust


@pytest.mark.parametrize(
    ("part", "key", "change"),
    [
        ("Link", "mtu", {"maximum": 9000}),
        ("Link", "mtu", {"default": 1400}),
        ("Node", "hz", {"type": "number"}),
        ("Flow", "transport", {"enum": ["tcp", "udp", "sctp"]}),
    ],
)
def test_a_difference_is_found(part, key, change):
    changed = json.loads(json.dumps(RUST))
    changed["$defs"][part]["properties"][key] |= change
    assert places(changed) != places(RUST)


def test_a_missing_or_optional_key_is_found():
    without, optional = (json.loads(json.dumps(RUST)) for _ in range(2))
    del without["$defs"]["Probe"]["properties"]["tunnel"]
    optional["$defs"]["Interface"]["required"].remove("node")
    optional["$defs"]["Interface"]["properties"]["node"]["default"] = ""
    assert places(without) != places(RUST) != places(optional)
