"""Single values of a scenario, set from outside: `flows.0.cc=bbr`, `network.rtt=40ms`."""

import os
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from bakeoff.errors import ScenarioError
from bakeoff.scenario import python_cc
from bakeoff.scenario.defaults import HOST_SYSCTLS
from bakeoff.scenario.error import DocumentError, did_you_mean, quoted
from bakeoff.scenario.language import Document
from bakeoff.scenario.yaml_file import parse_value

_TOLD: Final = ("vary", "exclude", "seeds", "run", "title", "scenario", "suite")
_FLOW_CC: Final = re.compile(r"flows(?:\.|\[)(?P<which>[^.\[\]]+)\]?\.cc")
_PLACEHOLDER: Final = re.compile(r"\{([\w-]+)\}")
_AXIS: Final = re.compile(r"vary\.[^.\[\]]+")
_LONGEST: Final = 60
"""Characters of a setting in a run's name."""
_LONGEST_NAME: Final = 200
"""Bytes of a run's name with its settings: a file system takes 255, and `~seed10` and the like come behind."""

Settings = Mapping[str, Any]
"""Where in the scenario -> the value there, as plain data."""


def parse_settings(words: Sequence[str]) -> dict[str, Any]:
    """`KEY=VALUE` of each word, the value read as YAML; BakeoffError says which is none."""
    settings = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip() or not value.strip():
            clear = f"; {key.strip()}=null takes the file's value away" if equals and key.strip() else ""
            raise ScenarioError(f"--set: '{word}'; expected a key and a value, such as network.rtt=40ms{clear}")
        settings[key.strip()] = parse_value(value, f"--set {key.strip()}")
    return settings


def with_settings(document: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The document with each value in its place; DocumentError names a key that leads nowhere."""
    changed = deepcopy(dict(document))
    renamed = []
    for key, value in settings.items():
        flow = _flow_of(changed, key)
        axis = axis_of(changed, key)
        if axis is not None:
            changed["vary"][axis] = [value]
            continue
        if flow is not None and _is_called_after_its_cc(flow):
            renamed.append((flow, str(flow["name"])))
        _set(changed, key, [value] if _AXIS.fullmatch(key) and not isinstance(value, (dict, list)) else value)
    for flow, name in renamed:
        # It gets the name of what it runs now, unless something else uses the name.
        if str(flow.get("name")) == name and not _is_used(changed, name):
            del flow["name"]
    return changed


def of_axes(document: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The settings with the name of an axis, `cc`, as its place, `vary.cc`; keys of a scenario's own stay."""
    axes = document.get("vary")
    own = axes if isinstance(axes, dict) else {}
    return {
        f"vary.{key}" if key in own and key not in document and key not in Document.model_fields else key: value
        for key, value in settings.items()
    }


def axis_of(document: Mapping[str, Any], key: str) -> str | None:
    """The axis that gives the congestion control that `key` sets, its flow's name and nothing else."""
    flow = _flow_of(document, key)
    match = _PLACEHOLDER.fullmatch(str(flow.get("cc", ""))) if flow is not None else None
    axes = document.get("vary")
    if flow is None or match is None or not isinstance(axes, dict) or match[1] not in axes:
        return None
    if flow.get("name") != flow["cc"]:
        return None
    rest = {key: value for key, value in document.items() if key not in ("run", "title", "flows")}
    others = [
        {key: value for key, value in each.items() if each is not flow or key not in ("cc", "name")}
        if isinstance(each, dict)
        else 0
        for each in document["flows"]
    ]
    return None if f"{{{match[1]}" in str([rest, others]) else match[1]


def _is_called_after_its_cc(flow: Mapping[str, Any]) -> bool:
    name, cc = flow.get("name"), flow.get("cc")
    return isinstance(name, str) and isinstance(cc, str) and name in (cc, cc.partition("@")[0])


def _flow_of(document: Mapping[str, Any], key: str) -> dict[str, Any] | None:
    """The flow whose congestion control `key` sets, by its number or name; None for other keys."""
    match = _FLOW_CC.fullmatch(key)
    flows = document.get("flows")
    if match is None or not isinstance(flows, list) or not all(isinstance(flow, dict) for flow in flows):
        return None
    which = match["which"]
    if which.isdecimal() and int(which) < len(flows):
        return flows[int(which)]  # type: ignore[no-any-return]
    return next((flow for flow in flows if str(flow.get("name")) == which), None)


def _is_used(data: object, name: str, key: object = None) -> bool:
    """Whether a filter or a program names the flow."""
    if isinstance(data, dict):
        return any(_is_used(value, name, key) for key, value in data.items())
    if isinstance(data, list):
        return any(_is_used(each, name, key) for each in data)
    return key == "flow" and data == name


def labels(settings: Settings) -> dict[str, str]:
    """What tells a run with settings from one without, as an axis of one label does: without what the axes tell."""
    return {key: label(value) for key, value in settings.items() if not _is_told(key)}


def _is_told(key: str) -> bool:
    """Whether the names of runs tell it already: a new axis has new labels, a value behind a label does not show."""
    first, *rest = re.split(r"[.\[]", key)
    return first in _TOLD and not (first == "vary" and len(rest) > 1)


def name_of(run: str, settings: Settings) -> str:
    """The name of a run, which may hold the value that was replaced, with the settings behind it."""
    added = [re.sub(r"[^\w.=%-]+", "_", f"{key}={value}") for key, value in labels(settings).items()]
    name = "+".join([run, *map(_cut, added)])
    whole = "+".join([run, *added]).encode()
    if not added or len(name.encode()) <= _LONGEST_NAME:
        return name
    begins = name.encode()[: _LONGEST_NAME - 11].decode(errors="ignore")
    return f"{begins}-{sha256(whole).hexdigest()[:10]}"


def _cut(words: str) -> str:
    """At most so many characters that a folder may have the name; words that are cut stay apart by their digest."""
    if len(words) <= _LONGEST:
        return words
    return f"{words[: _LONGEST - 7]}-{sha256(words.encode()).hexdigest()[:6]}"


def typed(settings: Settings) -> frozenset[str]:
    """All words in the values."""
    found: set[str] = set()
    left: list[object] = list(settings.values())
    while left:
        part = left.pop()
        if isinstance(part, str):
            found.add(part)
        elif isinstance(part, (dict, list)):
            left += part.values() if isinstance(part, dict) else part
    return frozenset(found)


def label(value: object) -> str:
    """The value as a table shows it; a file of Python by its path from the working directory."""
    if not isinstance(value, str):
        return quoted(value)
    module = python_cc.split(value)
    if module is None:
        return value
    path = os.path.relpath(Path(module.path).expanduser())
    return " ".join((f"{module.path if path.startswith('..') else path}:{module.name}", *module.words))


def _set(document: dict[str, Any], key: str, value: object) -> None:
    steps = re.sub(r"\[(\w+)\]", r".\1", key).split(".")
    here: Any = document
    for number, step in enumerate(steps):
        place = ".".join(steps[:number])
        if isinstance(here, dict) and step in ("sysctl", "colours") and number + 1 < len(steps):
            # The names below have dots of their own.
            default = HOST_SYSCTLS if (place, step) == ("hosts", "sysctl") else {}
            here.setdefault(step, dict(default))[".".join(steps[number + 1 :])] = value
            return
        last = number + 1 == len(steps)
        if isinstance(here, list):
            index = _index(here, step, place, key)
            if last:
                here[index] = value
            here = here[index]
        elif isinstance(here, dict):
            if last:
                here[step] = value
            elif here.get(step) is None:
                here[step] = {}
            here = here[step]
        else:
            raise DocumentError(
                key,
                f"'{place}' is {quoted(here)}, without '{step}'; expected a value for '{place}'",
            )


def _index(entries: list[Any], step: str, place: str, key: str) -> int:
    """Which entry of a list is meant: by its number, from 0, or by its name."""
    names = [str(entry["name"]) for entry in entries if isinstance(entry, dict) and "name" in entry]
    if step.isdecimal() and int(step) < len(entries):
        return int(step)
    if step in names:
        return next(i for i, entry in enumerate(entries) if isinstance(entry, dict) and str(entry.get("name")) == step)
    numbers = [str(number) for number in range(len(entries))]
    raise DocumentError(
        key,
        f"'{place}' has no entry '{step}'{did_you_mean(step, [*numbers, *names]) or '; it is empty'}",
    )
