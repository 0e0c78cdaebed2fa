"""The page of the claims that two engines decide differently is about the verdicts that are recorded."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "docs" / "validation" / "engines.py"


def test_the_page_has_every_claim_that_differs_and_no_other():
    spec = importlib.util.spec_from_file_location("engines_page", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    verdicts, both = module.recorded()
    differ = {name for name in both if verdicts[name]["sim"] != verdicts[name]["kernel"]}
    page = module.PAGE.read_text()
    rows = dict(re.findall(r"^\| (\S+/\S+) \| (.*? \| .*?) \|", page, re.MULTILINE))
    told = {
        name: " | ".join(" / ".join(filter(None, verdicts[name][each])) for each in ("sim", "kernel"))
        for name in differ
    }
    assert rows == told
