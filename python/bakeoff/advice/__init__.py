"""Advice for an access line: each queue's measures and costs, and the choice that a stated rule recommends.

People and programs read it as text for a terminal, as a page of HTML, and as JSON.
"""

from bakeoff.advice.as_html import page
from bakeoff.advice.as_json import record
from bakeoff.advice.as_text import text
from bakeoff.advice.household import Advice, Choice, Variant, advise
from bakeoff.advice.rule import Verdict

__all__ = ["Advice", "Choice", "Variant", "Verdict", "advise", "page", "record", "text"]
