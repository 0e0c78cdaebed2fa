"""The inventory: which machine is which node of a scenario, and which of its devices leads to which other node."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from bakeoff.errors import TestbedError, printable
from bakeoff.scenario.yaml_file import read_yaml

# What stands for a user or a machine: OpenSSH's own configuration may pass both to a shell (`ProxyCommand nc %h %p`).
_DESTINATION: Final = re.compile(r"[\w.:@%/\\\[\]+=-]+")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Interface(_Part):
    """A device of a machine. Short form: its name alone."""

    device: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$")
    """Its name on the machine: `enp1s0`."""
    in_use: Literal["refused", "allowed"] = "refused"
    """Whether it may have addresses or belong to a bridge already; addresses stay as they are."""


def _short(value: object) -> object:
    return {"device": value} if isinstance(value, str) else value


class Machine(_Part):
    """A machine."""

    host: str
    """What `ssh` takes: a name of ~/.ssh/config, a host name or an address."""
    user: str | None = None
    """Login; what OpenSSH's configuration says if absent."""
    become: str = ""
    """What makes a command root's: `sudo -n`; empty if the login is root's."""
    interfaces: dict[str, Annotated[Interface, BeforeValidator(_short)]]
    """node at the other end of the cable -> device."""

    @field_validator("host", "user")
    @classmethod
    def _no_option(cls, value: str | None) -> str | None:
        if value is not None and (value.startswith("-") or not _DESTINATION.fullmatch(value)):
            raise ValueError(f"'{value}': invalid ssh destination; expected for example 'mid.lab' or '192.0.2.7'")
        return value

    @field_validator("become")
    @classmethod
    def _words(cls, value: str) -> str:
        try:
            shlex.split(value)
        except ValueError as error:
            raise ValueError(f"'{value}': {error}; expected a command such as 'sudo -n'") from None
        return value


class Inventory(_Part):
    """A testbed."""

    nodes: dict[str, Machine] = Field(min_length=1)
    """node of the scenarios -> machine."""
    config: str | None = None
    """Another configuration file of OpenSSH than ~/.ssh/config (`ssh -F`), from the inventory's folder."""


def read(path: Path) -> Inventory:
    """The inventory in a YAML file; BakeoffError names file, place, value and the expected form."""
    data = read_yaml(path)
    try:
        inventory = Inventory.model_validate(data)
    except ValidationError as error:
        from bakeoff.scenario.explain import explain

        raise TestbedError(f"{path}: {explain(error, data)}") from None
    seen: dict[tuple[str, str | None], str] = {}
    for node, machine in inventory.nodes.items():
        other = seen.setdefault((machine.host, machine.user), node)
        if other != node:
            raise TestbedError(
                f"{path}: nodes.{node}.host: '{machine.host}': also the host of node '{other}'; expected one "
                "machine per node"
            )
        devices = [interface.device for interface in machine.interfaces.values()]
        for peer, interface in machine.interfaces.items():
            if devices.count(interface.device) > 1:
                raise TestbedError(
                    f"{path}: nodes.{node}.interfaces.{peer}: '{interface.device}': used for two nodes; expected one "
                    "device per link"
                )
    if inventory.config is None:
        return inventory
    config = path.parent / inventory.config
    try:
        there = config.is_file()
    except OSError:  # a name that is too long
        there = False
    if not there:
        raise TestbedError(f"{path}: config: '{str(config)[:1000]}': no such file; expected for example ~/.ssh/config")
    return inventory.model_copy(update={"config": str(config.resolve())})


# What makes OpenSSH start a program or load a library on this machine (ssh_config(5)), or read what is not looked at.
_STARTS: Final = frozenset(
    {
        "include",
        "knownhostscommand",
        "localcommand",
        "pkcs11provider",
        "proxycommand",
        "securitykeyprovider",
        "smartcarddevice",
        "xauthlocation",
    }
)
# OpenSSH takes a keyword in quotes, and passes over an empty one: `="ProxyCommand" x` and `""ProxyCommand x` are one.
_LINE: Final = re.compile(r'[\s="]*([A-Za-z0-9]+)"?\s*=?\s*(.*)')
_LARGEST: Final = 1 << 20
# OpenSSH puts the user and the host that a jump goes by into a command of a shell.
_JUMP: Final = re.compile(r"[\w.:@,%/\[\]+=-]*")
_permitted: set[Path] = set()


def permit(path: Path) -> None:
    """Let OpenSSH start what the configuration of the inventory at `path` names, for as long as this process lasts."""
    _permitted.add(path.resolve())


def started_here(config: Path) -> list[str]:
    """The lines of a configuration of OpenSSH that start programs on this machine, with their places."""
    with config.open("rb") as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise TestbedError(f"{config}: has more than {_LARGEST:,} bytes; expected a configuration of OpenSSH")
    found = []
    for number, line in enumerate(text.decode(errors="replace").split("\n"), 1):
        match = _LINE.match(line)
        if match is None:
            continue
        # OpenSSH reads ex"ec" as exec.
        keyword, value = match[1].lower(), match[2].replace('"', "").strip()
        if (
            (keyword in _STARTS and value != "none")
            or (keyword == "match" and "exec" in value.lower())
            or (keyword == "proxyjump" and not _JUMP.fullmatch(value))
        ):
            found.append(f"{config}:{number}: {line.strip()}")
    return found


def need_permission(path: Path, inventory: Inventory) -> list[str]:
    """What OpenSSH will start on this machine because the inventory at `path` says so.

    BakeoffError shows it, unless it was permitted.
    """
    started = started_here(Path(inventory.config)) if inventory.config is not None else []
    lines = [printable(line) for line in started]
    if lines and path.resolve() not in _permitted:
        raise TestbedError(
            f"{path}: config: OpenSSH would start local programs:\n  "
            + "\n  ".join(lines)
            + "\nexpected a configuration without them, or --allow-code after a review"
        )
    return lines
