"""The named rewriting rules of the l4s-tests harness, as matches and actions."""

from bakeoff.scenario.error import DocumentError
from bakeoff.scenario.network import MangleRule
from bakeoff.scenario.run import Ecn, Mangle, Match

ECN_BITS: tuple[Ecn, ...] = ("not-ect", "ect1", "ect0", "ce")
"""The two low bits of the ToS byte."""

NEED_DSCP = ("bleach_ecn", "dscp_to_ect1", "dscp_to_notect", "dscp_to_notect_ect1", "dscp_to_tos")
NEED_TOS = ("set_tos", "dscp_to_tos")


def mangling(rule: MangleRule, place: str) -> list[Mangle]:
    """The rewriting that a rule stands for, in order; DocumentError if it says too little."""
    if rule.rule is None:
        if rule.set_dscp is None and rule.set_ecn is None and not rule.clear_syn_ecn:
            raise DocumentError(place, "no action; expected 'rule', or set_dscp, set_ecn or clear_syn_ecn")
        return [
            Mangle(
                match=rule.match.resolved(),
                set_dscp=rule.set_dscp,
                set_ecn=rule.set_ecn,
                clear_syn_ecn=rule.clear_syn_ecn or None,
            )
        ]
    for key, value, need, example in (("dscp", rule.dscp, NEED_DSCP, "0x23"), ("tos", rule.tos, NEED_TOS, "0x01")):
        if value is None and rule.rule in need:
            raise DocumentError(place, f"'{rule.rule}' needs '{key}'; expected for example '{key}: {example}'")
    tcp = Match(proto="tcp", dscp=rule.dscp)
    syn = Match(proto="tcp", dscp=rule.dscp, syn=True)
    no_syn = Match(proto="tcp", dscp=rule.dscp, syn=False)
    tos = rule.tos or 0
    set_tos = Mangle(match=no_syn, set_dscp=tos >> 2, set_ecn=ECN_BITS[tos & 3])
    return {
        "bleach_ecn": [Mangle(match=tcp, set_dscp=0, set_ecn="not-ect")],
        "bleach_ce": [Mangle(match=Match(dscp=rule.dscp, ecn="ce"), set_ecn="not-ect")],
        "dscp_to_ect1": [Mangle(match=no_syn, set_dscp=0, set_ecn="ect1")],
        "dscp_to_notect": [Mangle(match=syn, clear_syn_ecn=True)],
        "dscp_to_notect_ect1": [
            Mangle(match=syn, clear_syn_ecn=True),
            Mangle(match=tcp, set_dscp=0, set_ecn="ect1"),
        ],
        "ect0_to_ect1": [Mangle(match=Match(dscp=rule.dscp, ecn="ect0"), set_ecn="ect1")],
        "ect1_to_ect0": [Mangle(match=Match(dscp=rule.dscp, ecn="ect1"), set_ecn="ect0")],
        "set_tos": [set_tos],
        "dscp_to_tos": [set_tos],
    }[rule.rule]
