"""What a template may ask: each method without an underscore is a function there, with the method's arguments.

docs/render.md describes them for whoever writes templates. All answer with Markdown, but `runs`, `run_count` and
`result_count`. BakeoffError says what is wrong with the arguments, or what the results do not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from pydantic import ConfigDict, ValidationError, validate_call

from bakeoff.claims import evaluate, expected, over_starts
from bakeoff.claims.expression import parse
from bakeoff.claims.verdict import Ours, word_of, worse
from bakeoff.errors import MeasureError, RenderError
from bakeoff.expressions import quantity
from bakeoff.expressions.grammar import ExpressionError
from bakeoff.expressions.nodes import TRUTH
from bakeoff.measure.measured_run import flow_of
from bakeoff.plots import dots as dot_plot
from bakeoff.plots import kinds as picture_kinds
from bakeoff.plots.draw import DEFAULT
from bakeoff.references import MEASURES
from bakeoff.render import network_text, run_files
from bakeoff.render.pictures import Pictures
from bakeoff.results import layout
from bakeoff.results.epochs import epochs
from bakeoff.scenario import units
from bakeoff.tables import claim_report as claims_shown
from bakeoff.tables import filters, results_table
from bakeoff.tables.cells import formatted
from bakeoff.tables.records import records
from bakeoff.tables.rows import choose_references, rows
from bakeoff.text.markdown import Markdown, code, escaped, label, paragraph, pipes

if TYPE_CHECKING:
    from collections.abc import Callable

    from bakeoff.claims.expression import Values
    from bakeoff.claims.verdict import Decided
    from bakeoff.render.finished_runs import FinishedRuns
    from bakeoff.render.page import Answer
    from bakeoff.render.run_files import RunFile
    from bakeoff.render.verdicts import Verdicts
    from bakeoff.results import Result

CLAIM_PARTS: Final = (
    "claim", "where", "says", "published", "ours", "verdict", "kernel", "cause", "explained"
)  # fmt: skip
"""What `claim` and `claims` can tell."""
_OF_THE_CATALOG: Final = ("claim", "where", "says", "published", "kernel")
"""What needs no runs."""
_COLUMNS: Final = ("says", "published", "ours", "verdict", "cause")
"""Of `claims`, if nothing else is asked for."""

_Runs = str | list[str] | dict[str, str]
_STRICT: Final = ConfigDict(strict=True)


class Functions:
    """The functions of one page."""

    def __init__(self, store: FinishedRuns, verdicts: Verdicts, pictures: Pictures) -> None:
        self._store = store
        self._verdicts = verdicts
        self._pictures = pictures

    def functions(self) -> dict[str, Answer]:
        """By the names that a template knows them by."""
        return {name: _checked(name, getattr(self, name)) for name in FUNCTIONS} | {"kinds": _checked("kinds", kinds)}

    def plot(self, run: _Runs, kind: str = DEFAULT, *, alt: str | None = None, **options: Any) -> str:  # noqa: ANN401
        """A picture, as Markdown shows it in the text; of several runs laid over each other, or of a campaign."""
        path, about = self._picture(run, kind, **options)
        return f"![{label(alt if alt is not None else about)}]({path})"

    def plot_link(self, run: _Runs, text: str, kind: str = DEFAULT, **options: Any) -> str:  # noqa: ANN401
        """A link to a picture; the words are those of `plot`."""
        path, _ = self._picture(run, kind, **options)
        return f"[{label(text)}]({path})"

    def log_link(self, run: str, text: str, *, file: str = layout.SETUP_LOG, seed: int = 1) -> str:
        """A link to a copy of a run's log: `setup.log`, `teardown.log`, or `console.log` of a kernel."""
        return self._file_link(run, seed, text, lambda result: run_files.log(result, file))

    def capture_link(self, run: str, text: str, interface: str | None = None, *, seed: int = 1) -> str:
        """A link to a copy of a run's capture, compressed; of several captures that of `interface`, such as mid>srv."""
        return self._file_link(run, seed, text, lambda result: run_files.capture(result, interface))

    def flent_link(self, run: str, text: str, *, seed: int = 1) -> str:
        """A link to the run as Flent's data file."""
        return self._file_link(run, seed, text, run_files.flent)

    def _file_link(self, run: str, seed: int, text: str, file: Callable[[Result], RunFile]) -> str:
        name = self._store.one(run)
        found = file(self._of_seed(name, seed))
        head = name if seed == 1 else f"{name}-seed{seed}"
        return f"[{label(text)}]({self._pictures.copy(f'{head}-{found.name}', found.content)})"

    @validate_call(config=_STRICT)
    def _picture(
        self,
        run: _Runs,
        kind: str,
        *,
        name: str | None = None,
        seed: int = 1,
        scale: str = "auto",
        measure: str | None = None,
        x: str | None = None,
        y: str | None = None,
        title: str | None = None,
        columns: bool = False,
        format: str = "png",  # noqa: A002 (a template's word)
    ) -> tuple[str, str]:
        """The path of the picture, and what it is of in words."""
        options: dict[str, Any] = {
            "scale": scale, "measure": measure, "x": x, "y": y, "format": format, "title": title, "columns": columns
        }  # fmt: skip
        called = list(run) if isinstance(run, dict) else None
        names = [self._store.one(one) for one in run.values()] if isinstance(run, dict) else self._store.names(run)
        found = self._store.repetitions(names)
        if picture_kinds.kind(kind).of == "run":
            found = [self._of_seed(one, seed) for one in names]
        elif called:
            raise RenderError(f"plot: '{kind}' draws a campaign; expected runs without labels")
        if name is None:
            name = "-".join([*(names[:1] if len(names) == 1 else [names[0], "and", str(len(names) - 1)]), kind])
        of = (names, called, kind, seed, str(options))
        path = self._pictures.add(name, of, found, {**options, "kind": kind, "names": called})
        if title is not None:
            return path, f"{title} ({'; '.join(called)})" if called else title
        return path, f"{kind}: {', '.join(names[:3])}{' and others' if len(names) > 3 else ''}"

    def _of_seed(self, name: str, seed: int) -> Result:
        found = self._store.repetitions([name])
        for result in found:
            if result.run.seed == seed:
                return result
        have = ", ".join(str(result.run.seed) for result in found)
        raise RenderError(f"{name}: no repetition with seed {seed}; expected one of: {have}")

    def measure(
        self,
        expression: str,
        run: str | dict[str, str],
        *,
        unit: str | None = None,
        digits: int | None = None,
        interval: bool = True,
        show_unit: bool = True,
        reference: str | None = None,
    ) -> str:
        """A number in the claims' own language (docs/claims.md), as mean and 95 % interval over the repetitions.

        `run` is one run, or several by the names that `of` has in the expression. Of a comparison whether it holds.
        With `reference` (the name of a file of catalog/references) from the numbers that others recorded of the run.
        Without `show_unit` the number stands alone, and `unit` says what it is in.
        """
        ours, text = self._measured(expression, run, reference)
        if isinstance(ours, str):
            return ours
        if show_unit:
            return _number(ours, unit, digits, interval=interval, what=text)
        if unit is None and ours.unit not in (None, "1"):
            able = quantity.UNITS.get(ours.unit or "", "none")
            raise RenderError(f"measure: '{text}': show_unit=false needs unit; expected one of {able}")
        return _number(ours, unit, 2 if digits is None else digits, interval=interval, what=text).removesuffix(
            f" {unit}"
        )

    def dots(
        self,
        rows: dict[str, dict[str, str | dict[str, str]]],
        measure: str,
        looks: dict[str, str],
        *,
        axis: str,
        name: str,
        alt: str,
        unit: str | None = None,
        log: bool = False,
        mark: float | None = None,
        format: str = "svg",  # noqa: A002 (a template's word)
    ) -> str:
        """A dot plot: a row per set-up, and in it a dot with its 95 % interval for each variant.

        `rows` has by row label and variant the run, or a mapping with `run` and optionally `reference` and `measure`,
        which replaces that of the picture. `looks` has the variants in their order, and each one's colour
        (`plots.dots.look`). Values are in `unit`; `mark` is a vertical line, also in `unit`.
        """
        drawn = {
            label: {variant: self._dot(measure, _entry_of(entry), unit) for variant, entry in row.items()}
            for label, row in rows.items()
        }
        styles = {variant: dot_plot.look(words) for variant, words in looks.items()}
        path = self._pictures.draw(
            name, (str(rows), measure, axis, unit), format,
            lambda: dot_plot.figure(drawn, styles, axis=axis, log=log, mark=mark),
        )  # fmt: skip
        return f"![{label(alt)}]({path})"

    def _dot(self, measure: str, entry: dict[str, str], unit: str | None) -> dot_plot.Dot:
        ours, text = self._measured(entry.get("measure", measure), entry["run"], entry.get("reference"))
        if isinstance(ours, str):
            raise RenderError(f"dots: '{text}' is true or false; expected a number")
        factor = 1.0 if unit is None else _factor(ours, unit, text)
        low, high = ours.interval or (ours.mean, ours.mean)
        shown = quantity.formatted(ours.mean / factor, None)
        return dot_plot.Dot(ours.mean / factor, low / factor, high / factor, shown)

    def _measured(self, text: str, run: object, reference: str | None = None) -> tuple[Ours | str, str]:
        if reference is not None:
            return self._recorded(text, run, reference), text
        named = run if isinstance(run, dict) else {None: run}
        chosen = {short: self._store.repetitions([self._store.one(name)]) for short, name in named.items()}
        try:
            expression = parse(text, [short for short in chosen if short is not None])
        except ExpressionError as error:
            raise RenderError(f"measure: {error}") from None
        values = _by_seed(text, chosen)
        try:
            if expression.unit == TRUTH:
                return word_of(over_starts.direction(expression, values, "typical").truth), text
            numbers = tuple(expression.number(each) for each in values)
        except MeasureError as error:
            raise RenderError(f"measure: '{text}': {error}") from None
        return Ours((numbers,), expression.unit, expression.limits), text

    def _recorded(self, text: str, run: object, reference: str) -> Ours:
        """An expression of the numbers that a reference has of a run, over its seeds."""
        found = self._store.repetitions([self._store.one(run)])[0].run
        try:
            expression = parse(text, ())
            flows = {
                call: flow_of(found, flow).name
                for call in expression.calls
                for key, flow in call.arguments
                if call.measure in MEASURES and key == "flow" and not isinstance(flow, float)
                if len(call.arguments) == 1
            }  # fmt: skip
        except (ExpressionError, MeasureError) as error:
            raise RenderError(f"measure: {error}") from None
        if other := next((call for call in expression.calls if call not in flows), None):
            raise RenderError(f"measure: '{other}' with a reference; expected {', '.join(MEASURES)} of a flow")
        at = (found.suite, found.scenario, found.run)
        lines = {
            (line.flow, line.measure, line.seed): line.value
            for line in choose_references([], reference) if (line.suite, line.scenario, line.run) == at
        }  # fmt: skip
        values = []
        for seed in sorted({seed for _, _, seed in lines}, key=lambda seed: seed or 0):
            wanted = {call: (flow, call.measure, seed) for call, flow in flows.items()}
            if all(key in lines for key in wanted.values()):
                values.append(expression.number({call: lines[key] for call, key in wanted.items()}))
        if not values:
            raise RenderError(f"measure: the reference '{reference}' has no '{text}' of {'/'.join(at)}")
        return Ours((tuple(values),), expression.unit, expression.limits)

    def table(
        self,
        run: str | list[str] | dict[str, str],
        columns: list[str] | dict[str, str] | None = None,
        *,
        rows: str = "runs",
        head: str = "run",
        sort: str | None = None,
        where: str | None = None,
        reference: str | None = None,
    ) -> str:
        """A table of runs. Without columns, as `bakeoff table --format markdown` writes it.

        `columns` are names of columns (docs/tables.md) or measures (docs/claims.md), or both by the heads that they
        get. `run` may be a mapping too: the runs by the words that stand in the first column, which `head` heads.
        """
        if columns is None:
            if isinstance(run, dict):
                raise RenderError("table: missing 'columns' for runs with labels")
            return self._whole_table(run, rows=rows, sort=sort, where=where, reference=reference)
        if rows != "runs":
            raise RenderError(f"table: rows '{rows}' with custom columns; expected rows 'runs', or no columns")
        # What the template itself says may be Markdown, as everything else in it.
        heads = _as_markdown(columns) if isinstance(columns, dict) else {name: name for name in columns}
        if not heads:
            raise RenderError("table: columns: expected one or more names of columns or measures")
        labels = (
            _as_markdown({word: self._store.one(name) for word, name in run.items()}) if isinstance(run, dict) else {}
        )
        flat = self._flat(list(labels.values()) if labels else run, reference)
        names = list(labels.values()) if labels else _in_order(flat, sort, where)
        first = list(labels) if labels else _short(names)
        cells = [[word, *(self._cell(name, flat[name], column) for column in heads.values())]
                 for word, name in zip(first, names, strict=True)]  # fmt: skip
        return pipes([Markdown(head), *heads], [True, *[False] * len(heads)], cells).rstrip()

    def _whole_table(self, run: object, **options: Any) -> str:  # noqa: ANN401 (a table's own)
        found = self._store.repetitions(self._store.names(run))
        condition, kind = options.pop("where"), options.pop("rows")
        return results_table.render(found, format="markdown", kind=kind, condition=condition, **options).rstrip()

    def _flat(self, run: object, reference: str | None) -> dict[str, Mapping[str, filters.Value]]:
        found = self._store.repetitions(self._store.names(run))
        made = rows(found, choose_references(found, reference))
        return {f"{row.suite}/{row.scenario}/{row.run}": record for row, record in records(made, "runs")}

    def _cell(self, name: str, record: Mapping[str, filters.Value], column: str) -> str:
        if "(" not in column:
            column = filters.resolve(column, [record], "columns")
            return formatted(column, filters.lookup(record, column))
        ours, _ = self._measured(column, name)
        return ours if isinstance(ours, str) else claims_shown.value(ours)

    def claim(self, name: str, part: str | None = None) -> str:
        """The verdict on a claim with its numbers; or one part of what is known of it: see `CLAIM_PARTS`."""
        if part in _OF_THE_CATALOG:
            return escaped(_part(self._verdicts.undecided(name), part))
        each = self._verdicts.one(name)
        if part is not None:
            return escaped(_part(each, part))
        numbers = _part(each, "ours")
        published = _part(each, "published")
        parts = [f"{what}: {escaped(part)}" for what, part in (("measured", numbers), ("published", published)) if part]
        return f"**{escaped(_part(each, 'verdict'))}**" + (f" ({'; '.join(parts)})" if parts else "")

    def claims(self, pattern: str, columns: list[str] | None = None) -> str:
        """A table of claims; `columns` are some of `CLAIM_PARTS`."""
        chosen = list(_COLUMNS) if columns is None else columns
        found = self._verdicts.of(pattern)
        return pipes(chosen, [True] * len(chosen), [[_part(each, part) for part in chosen] for each in found]).rstrip()

    def causes(self, pattern: str) -> str:
        """A list of the claims that do not hold, each with its cause in sentences; empty if all hold."""
        found = [each for each in self._verdicts.of(pattern) if each.claim.cause is not None and not each.outcome.holds]
        return "\n".join(f"- {paragraph(each.claim.says)} {escaped(_part(each, 'explained'))}" for each in found)

    def verdict_counts(self, pattern: str = "*") -> str:
        """A table of how many claims of each document have which verdict."""
        return claims_shown.counts(claims_shown.verdicts(self._verdicts.of(pattern))).rstrip()

    def topology(self, run: str) -> str:
        """The path of a run and what was set up on it, as a block of text."""
        return network_text.text(self._store.repetitions([self._store.one(run)])[0].run)

    def runs(self, pattern: str | list[str] = "*") -> list[str]:
        """The names of the runs that a glob means."""
        return self._store.names(pattern)

    def run_count(self, pattern: str | list[str] = "*") -> int:
        """How many runs a glob means, repetitions not counted."""
        return len(self._store.names(pattern))

    def result_count(self, pattern: str | list[str] = "*") -> int:
        """How many results those are, repetitions counted."""
        return len(self._store.repetitions(self._store.names(pattern)))

    def provenance(self, pattern: str | list[str] = "*") -> str:
        """From which bakeoff, model epoch, commits and days the runs come that a glob means."""
        found = self._store.repetitions(self._store.names(pattern))
        made = [result.record.provenance for result in found if result.record.provenance]
        days = sorted({f"{one.date:%Y-%m-%d}" for one in made})
        engines = sorted({result.record.engine for result in found})
        parts = [f"{len(found):,} results", f"engine {', '.join(engines)}"]
        parts += [f"bakeoff {', '.join(sorted({one.version for one in made}))}"] if made else []
        commits = sorted({one.commit[:12] + (" (changed)" if one.dirty else "") for one in made if one.commit})
        parts += [f"commit {_several(commits)}"] if commits else []
        parts.append("model epoch " + ", ".join(str(epoch or "unknown") for epoch in epochs(found)))
        parts += [days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"] if days else []
        return escaped(", ".join(parts))


FUNCTIONS: Final = tuple(name for name in vars(Functions) if not name.startswith("_") and name != "functions")
"""The names of all functions whose answers come from results."""


def _checked(name: str, function: Answer) -> Answer:
    """The function, for arguments of whatever type a template has."""
    checked = validate_call(config=_STRICT)(function)

    def call(*args: Any, **named: Any) -> Any:  # noqa: ANN401 (what a template has)
        try:
            return checked(*args, **named)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"] if not isinstance(part, int))
            raise RenderError(f"{name}: {place or 'its arguments'}: {first['msg']}") from None

    return call


def kinds() -> str:
    """A table of all kinds of pictures."""
    of = {"run": "one run, or several with `--overlay`", "campaign": "a campaign"}
    cells = [[code(kind.name), kind.shows, Markdown(of[kind.of])] for kind in picture_kinds.KINDS]
    return pipes(["kind", "shows", "of"], [True] * 3, cells).rstrip()


def _as_markdown(named: Mapping[str, str]) -> dict[str, str]:
    return {Markdown(text): name for text, name in named.items()}


def _several(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _by_seed(text: str, chosen: Mapping[str | None, Sequence[Result]]) -> list[Values]:
    """What the expression's measures give for each seed that all runs have. BakeoffError if there is none."""
    by_seed = {short: {int(one.run.seed): one for one in several} for short, several in chosen.items()}
    seeds = sorted(set[int].intersection(*map(set, by_seed.values())))
    if not seeds:
        raise RenderError(f"measure: '{text}': its runs have no seeds in common")
    values = []
    for seed in seeds:
        runs = {short: of[seed] for short, of in by_seed.items() if short is not None}
        values.append(evaluate.taken(runs or by_seed[None][seed], text)[1])
    return values


def _number(ours: Ours, unit: str | None, digits: int | None, *, interval: bool, what: str) -> str:
    """Mean and interval, in a unit and with as many digits behind the point as were asked for."""
    if digits is not None and not 0 <= digits <= 9:
        raise RenderError(f"measure: digits: {digits!r}; expected a number from 0 to 9")
    if (unit is None and digits is None) or not isfinite(ours.mean):
        return claims_shown.value(ours) if interval else quantity.formatted(ours.mean, ours.unit)
    base, factor = (ours.unit, 1.0)
    if unit is not None:
        base, factor = unit, _factor(ours, unit, what)
    places = 2 if digits is None else digits
    text = f"{ours.mean / factor:,.{places}f}"
    if interval and ours.ci95 is not None and ours.interval is not None:
        low, high = ours.interval
        cut = low > ours.mean - ours.ci95 or high < ours.mean + ours.ci95
        both = f" [{low / factor:,.{places}f}, {high / factor:,.{places}f}]"
        text += both if cut else f" ± {ours.ci95 / factor:,.{places}f}"
    name = "" if base in (None, "1") else f" {base}"
    return f"{text}{name}"


def _factor(ours: Ours, unit: str, what: str) -> float:
    """What one of the unit is in the base unit. BakeoffError if the number has no such unit."""
    known = units.unit_of(unit)
    if known is None or known[1] != ours.unit:
        able = quantity.UNITS.get(ours.unit or "", "none")
        raise RenderError(f"measure: '{what}' has no unit '{unit}'; expected one of {able}")
    return float(known[0])


def _entry_of(entry: str | dict[str, str]) -> dict[str, str]:
    if isinstance(entry, str):
        return {"run": entry}
    if "run" not in entry or not entry.keys() <= {"run", "reference", "measure"}:
        raise RenderError(f"dots: {entry}; expected a run, or a mapping with 'run', 'reference' and 'measure'")
    return entry


def _in_order(flat: Mapping[str, Mapping[str, filters.Value]], sort: str | None, condition: str | None) -> list[str]:
    names, found = list(flat), list(flat.values())
    places = list(range(len(names)))
    if condition is not None:
        places = filters.select(found, condition)
    if sort is not None:
        kept = [found[index] for index in places]
        places = [places[at] for at in filters.order(kept, sort)]
    if not places:
        raise RenderError(f"table: none of {len(names)} runs matches {condition}")
    return [names[index] for index in places]


def _short(names: Sequence[str]) -> list[str]:
    """Without what all have in common."""
    heads = {name.rpartition("/")[0] for name in names}
    return [name.rpartition("/")[2] if len(heads) == 1 else name for name in names]


def _part(each: Decided, part: str) -> str:
    if part not in CLAIM_PARTS:
        raise RenderError(f"claim: no part '{part}'; expected one of {', '.join(CLAIM_PARTS)}")
    if part == "kernel":
        row = expected.load().get((each.claim.name, "kernel"))
        return worse([word for word in row if word]) if row else ""
    return claims_shown.part(each, part)
