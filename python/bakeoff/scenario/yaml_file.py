"""Reading YAML: plain data, with clear errors.

Two departures from YAML 1.1, both towards what people mean: only `true` and `false` are booleans (so `on` and `off`
are words), and nothing is a date or a base-60 number (so `2020-08-01` and `1:30` are strings). A key given twice is
an error.
"""

import re
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from bakeoff import files
from bakeoff.errors import ScenarioError
from bakeoff.scenario import bounds

try:
    from yaml import CSafeLoader as BaseLoader
except ImportError:  # PyYAML without libyaml
    from yaml import SafeLoader as BaseLoader  # type: ignore[assignment]


_LARGEST: Final = 16 << 20
"""Bytes of a file."""
_DIGITS: Final = 18
"""Of a whole number: what 64 bits hold."""


class _Loader(BaseLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            # A key that is a list or a mapping is refused below.
            if str(key.value) in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key '{key.value}'", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep=deep)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Take in what `<<` names, each key once: what several aliases repeat would double with every level."""
        super().flatten_mapping(node)
        node.value = list({(key.tag, str(key.value)): (key, value) for key, value in node.value}.values())


_DROPPED = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag not in _DROPPED]
    for first, resolvers in BaseLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(?:true|false|True|False)$"), list("tfTF"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0|[1-9][0-9]*|0x[0-9a-fA-F]+)$"), list("-+0123456789")
)


# Nothing but plain data: an explicit tag can ask for no date, set or bytes either.
_PLAIN = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "seq", "map")}
_Loader.yaml_constructors = {
    tag: maker for tag, maker in BaseLoader.yaml_constructors.items() if tag is None or tag in _PLAIN
}


_PLACEHOLDER: Final = re.compile(r"(?<![\"'{])(\{[A-Za-z_][\w.-]*\})(?![\"'])")


def _whole(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    if len(node.value) > _DIGITS + 2:
        raise yaml.constructor.ConstructorError(
            None, None, f"a number of {len(node.value)} characters; expected at most {_DIGITS} digits", node.start_mark
        )
    number: int = loader.construct_yaml_int(node)
    return number


_Loader.add_constructor("tag:yaml.org,2002:int", _whole)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in the YAML file at `path`; BakeoffError names the file and the line."""
    try:
        text = files.read(path, _LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ScenarioError(f"{path}: cannot be read: {reason}; expected a YAML file") from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, path: str) -> dict[str, Any]:
    """The mapping in `text`; `path` is for messages."""
    data = parse_value(text, path)
    if not isinstance(data, dict):
        found = "nothing" if data is None else "a list" if isinstance(data, list) else f"'{data}'"[:60]
        raise ScenarioError(f"{path}: found {found}; expected a mapping that starts like 'scenario: NAME'")
    odd = next((key for key in data if not isinstance(key, str)), None)
    if odd is not None:
        raise ScenarioError(f"{path}: unknown key '{odd}'; expected keys such as 'duration' and 'network'")
    return data


def parse_value(text: str, path: str) -> Any:  # noqa: ANN401 (plain data)
    """What `text` holds, be it a mapping, a list or a single value; `path` is for messages."""
    try:
        _check_depth(text, path)
        data = yaml.load(text, Loader=_Loader)  # noqa: S506 (derived from the safe loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        hint = _quotes(
            text.splitlines()[mark.line - 1 : mark.line + 1] if mark and mark.line else text.splitlines()[:1]
        )
        raise ScenarioError(f"{path}: {place}not YAML: {error.problem or error.context}{hint}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ScenarioError(f"{path}: not YAML: {error}") from None
    too_much = bounds.too_much_text(data)
    if too_much is not None:
        raise ScenarioError(f"{path}: {too_much}")
    odd = _unprintable(data)
    if odd is not None:
        raise ScenarioError(f"{path}: {odd!r} contains an unprintable character; expected plain text")
    return data


def _quotes(lines: Sequence[str]) -> str:
    """What may be wrong in these lines: a text with a placeholder, which YAML takes for a mapping."""
    if any(line.startswith("\t") or re.match(r" *\t", line) for line in lines):
        return "; a line starts with a tab; expected spaces"
    found = next((match[1] for line in lines if (match := _PLACEHOLDER.search(line))), None)
    return "" if found is None else f'; a text with {found} in it needs quotes: "…{found}…"'


def _check_depth(text: str, path: str) -> None:
    """BakeoffError for mappings and lists too deep inside each other: the library would run out of stack, and die."""
    depth = 0
    for event in yaml.parse(text, Loader=BaseLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > bounds.DEEPEST:
            raise ScenarioError(f"{path}: {bounds.TOO_DEEP}")


def _unprintable(data: object) -> str | None:
    """The first text with a character that a terminal would act on, and not show; lines and tabs are plain text."""
    seen: set[int] = set()
    left = [data]
    while left:
        part = left.pop()
        if isinstance(part, str):
            if not part.replace("\n", "").replace("\t", "").isprintable():
                return part
        elif isinstance(part, (dict, list)) and id(part) not in seen:
            seen.add(id(part))
            left += [*part.values(), *part.keys()] if isinstance(part, dict) else part
    return None
