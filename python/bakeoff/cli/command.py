"""Commands and groups of commands that a shell completes at once."""

from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption


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


class Command(TyperCommand):
    """A command that a shell completes at once."""

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
