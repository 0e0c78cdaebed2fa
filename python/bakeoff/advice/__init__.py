"""Advice for an access line: what each queue gives and costs, and which of them a stated rule recommends."""

from bakeoff.advice.advice import Advice, Choice, Variant, advise
from bakeoff.advice.rule import Verdict

__all__ = ["Advice", "Choice", "Variant", "Verdict", "advise"]
