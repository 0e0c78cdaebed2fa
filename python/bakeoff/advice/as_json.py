"""The advice for programs: SI units, and the words that people see."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bakeoff.advice import sentences
from bakeoff.advice.quantities import limits
from bakeoff.advice.rule import CLOSE_S, NEEDS
from bakeoff.measure import ends

if TYPE_CHECKING:
    from pathlib import Path

    from bakeoff.advice.household import Advice, Choice
    from bakeoff.advice.rule import Verdict
    from bakeoff.scenario.access_line import Asked


def record(asked: Asked, advice: Advice, root: Path) -> dict[str, Any]:
    """Plain JSON values. Numbers are in seconds, bit/s and shares from 0 to 1; `ci95` is half of the 95 %
    interval by Student's t, `low` and `high` its ends, cut to what is possible."""
    line = {key: value for key, value in asdict(asked).items() if value is not None and key != "mix"}
    return {
        "line": {**line, **({"mix": str(asked.mix)} if asked.mix is not None else {})},
        "results": str(root),
        "recommended": advice.main.verdict.choice,
        "recommendation": sentences.recommendation(advice),
        "rule": {
            "close_s": CLOSE_S,
            "needs": [
                {
                    "measure": need.key,
                    "bound": need.bound,
                    "at": "least" if need.more else "most",
                    "of_the_best": need.relative,
                    "words": need.need,
                }
                for need in NEEDS
            ],
        },
        "variants": [
            {
                "variant": variant.label,
                "verdict": _verdict(variant.verdict),
                "at_home": _verdict(variant.at_home) if variant.at_home is not None else None,
                "choices": [_choice(advice, choice) for choice in variant.choices],
            }
            for variant in advice.variants
        ],
        "assumptions": sentences.assumptions(asked, advice),
        "queues": dict(
            zip((c.label for c in advice.main.choices), (tc for _, tc in sentences.choices(advice)), strict=True)
        ),
        "commands": {choice.label: lines for choice, lines in sentences.commands(advice)},
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "choice": verdict.choice,
        "runner_up": verdict.runner_up,
        "reason": verdict.reason,
        "missed": [need.key for need in verdict.missed],
        "difference": verdict.difference,
        "each_repetition": list(verdict.alone),
    }


def _choice(advice: Advice, choice: Choice) -> dict[str, Any]:
    found = {}
    for measure in advice.measures:
        known = choice.interval(measure.key)
        if known is not None:
            number = choice.means[measure.key]
            both = ends(known, limits(measure))
            found[measure.key] = {
                **known,
                "low": both and both[0],
                "high": both and both[1],
                "at_least": number.at_least,
                "good": measure not in choice.missed,
            }
    return {
        "choice": choice.label,
        "words": choice.words.head,
        "where": choice.words.where,
        "runs": [result.key for result in choice.results],
        "measures": found,
    }
