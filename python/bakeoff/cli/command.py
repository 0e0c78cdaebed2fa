"""Commands and groups of commands that begin, and that a shell completes, at once."""

from collections.abc import Callable
from functools import cached_property
from inspect import getdoc
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command_from_info
from typer.models import CommandInfo


def add(
    app: typer.Typer, *functions: Callable[..., None], section: str = "Commands", before_command: bool = False
) -> None:
    """Make functions commands of `app`, named as they are: `list_` is `list`, and `fetch_source` is `fetch-source`.

    `section` is the heading in the help of `app` under which they are listed. `before_command`: from the second
    argument on, all words are of another command.
    """
    settings = {"ignore_unknown_options": True, "allow_interspersed_args": False} if before_command else None
    for function in functions:
        kind = type("Command", (Command,), {"function": staticmethod(function), "section": section})
        name = function.__name__.rstrip("_").replace("_", "-")
        app.command(name, cls=kind, help=getdoc(function), context_settings=settings)(_nothing)


def _nothing() -> None:
    """What typer is given in place of a command's function."""


def _share(command: Any, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 (typer shows no types of these)
    """Share the words of an unfinished command line out to the parameters, for a shell that completes a word.

    typer would convert them with pydantic, whose import takes longer than everything else that a completion does.
    """
    parser = command.make_parser(ctx)
    values, rest, _ = parser.parse_args(args=args)
    for param in command.get_params(ctx):
        ctx.params[param.name], source = param.consume_value(ctx, values)
        ctx.set_parameter_source(param.name, source)
    ctx._opt_prefixes.update(parser._opt_prefixes)
    ctx.args = rest
    return list(rest)


def _expanded(function: Callable[..., None]) -> Callable[..., None]:
    """The function with the options of its groups (`options.takes`) in place of the parameters that hold them."""
    groups: dict[str, type] = getattr(function, "option_groups", {})
    if not groups:
        return function
    import inspect
    from dataclasses import fields
    from typing import get_type_hints

    def command(**given: object) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        function(**given)

    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.name not in groups:
            parameters.append(parameter)
            continue
        group = groups[parameter.name]
        types = get_type_hints(group, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name]
            )
            for field in fields(group)
        ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__doc__ = function.__doc__
    return command


class Command(TyperCommand):
    """A command of which typer reads the parameters only if it is called, completed or explained.

    It takes 3 ms for each function, and for all of them longer than everything else that `--help` of a command does.
    """

    function: Callable[..., None]
    section: str

    @cached_property
    def _whole(self) -> Any:  # noqa: ANN401 (typer shows no types of these)
        info = CommandInfo(self.name, callback=_expanded(self.function))
        return get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode=None)

    @property
    def params(self) -> Any:  # noqa: ANN401
        """What can be said on the command line."""
        return self._whole.params

    @params.setter
    def params(self, none: Any) -> None:  # noqa: ANN401
        """Those of `_nothing`."""

    @property
    def callback(self) -> Any:  # noqa: ANN401
        """Calls the function with what was said."""
        return self._whole.callback

    @callback.setter
    def callback(self, nothing: Any) -> None:  # noqa: ANN401
        """That of `_nothing`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Convert the words, unless one is being completed."""
        return _share(self, ctx, args) if ctx.resilient_parsing else super().parse_args(ctx, args)


class Group(TyperGroup):
    """A command that has commands, likewise."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Convert the words, unless one is being completed."""
        if ctx.resilient_parsing:
            return _share(self, ctx, args)
        for param in self.get_params(ctx):
            # Typer's own switches have no default. It would import pydantic to convert that, even for a page of help.
            if isinstance(param, TyperOption) and param.is_flag and param.default is None:
                param.default = False
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """One list of commands for each section, in the order of registration."""
        found: dict[str, list[tuple[str, str]]] = {}
        names = self.list_commands(ctx)
        room = formatter.width - 6 - max(map(len, names))
        for name in names:
            command = self.commands[name]
            row = (f"{name:<{max(map(len, names))}}", command.get_short_help_str(room))
            found.setdefault(getattr(command, "section", "Kernel"), []).append(row)
        for section, rows in found.items():
            with formatter.section(section):
                formatter.write_dl(rows)
