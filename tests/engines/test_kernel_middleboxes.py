"""Congestion controls of this repository's modules behind middleboxes that take away what they stand on."""

from __future__ import annotations

import pytest
from test_kernel_modules import module

from bakeoff.engines.kernel.boot import read_console
from bakeoff.engines.kernel.console import trouble
from kernel_boots import guest

# What each does to segments by nft, and the flags and mask of those that lose CWR and ECE.
MIDDLEBOXES = {
    "does nothing": ([], ""),
    "clears the ECN field": (["ip ecn set not-ect"], ""),
    "makes ECT(1) of all": (["ip ecn != not-ect ip ecn set ect1"], ""),
    "marks everything": (["ip ecn != not-ect ip ecn set ce"], ""),
    "takes AccECN's option out": (["reset tcp option 174"], ""),
    "drops what has AccECN's option": (["tcp option 174 exists drop"], ""),
    "clears CWR and ECE of SYNs": ([], "0x02/0x12"),
    "clears CWR and ECE of all others": ([], "0x00/0x02"),
}


@pytest.mark.parametrize(("name", "cc"), [("tcp_prague", "prague"), ("tcp_sce", "reno-sce")])
def test_a_connection_lives_behind_a_middlebox(real_kernel, tmp_path, name, cc):
    path = str(module(real_kernel, name))
    done = guest(
        real_kernel, tmp_path, do="middleboxes", module=path, cc=cc, middleboxes=MIDDLEBOXES, simulated_s=200.0
    )
    said = done["answer"]
    # Every packet is marked: the window stays at its least, which reno-sce has at two packets and prague below one.
    rate, _ = said.pop("marks everything")
    assert 0.05 < rate < 2.5
    # Frames of 1514 bytes carry 1436 to 1448: 9.48 to 9.56 Mbit/s if the path is never idle. A mark of SCE on each
    # packet leaves reno-sce a window that is a little short.
    assert {name: rate for name, (rate, _) in said.items() if not 8.5 < rate < 9.6} == {}
    assert {control for _, control in said.values()} == {cc}
    assert trouble(read_console(done["outcome"].console)) is None
