"""The engines there are."""

import pytest

from bakeoff import engines


@pytest.mark.parametrize("name", engines.MODULES)
def test_every_engine_has_what_a_campaign_calls(name):
    engine = engines.get(name)
    assert all(callable(getattr(engine, part)) for part in ("check", "execute", "versions", "estimate_s"))
