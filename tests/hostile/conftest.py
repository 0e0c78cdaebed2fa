"""What several of these tests begin from."""

import pytest

from bakeoff import campaign
from bakeoff.campaign import Execution
from bakeoff.duels import Duel
from bakeoff.scenario import duel


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A duel's results; each module has its own."""
    root = tmp_path_factory.mktemp("done") / "c"
    run = duel(Duel(cc1="reno", cc2="cubic", qdisc="pfifo", rate="10mbit", duration="2s"))
    assert not campaign.run([run], root, Execution(jobs=1)).failed
    return root
