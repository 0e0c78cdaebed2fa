"""What the advice says in sentences; every number in them was measured, and every word follows from the rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

from bakeoff.advice.numbers import GRACE_S, Run, is_l4s, line_ends
from bakeoff.advice.quantities import figure, named
from bakeoff.advice.rule import CLOSE_S, DELAY, NEEDS
from bakeoff.scenario.access_line import LINE
from bakeoff.scenario.cc_words import parse
from bakeoff.scenario.run import ConstantRate, Periodic, Short, Video
from bakeoff.text.columns import clean

if TYPE_CHECKING:
    from bakeoff.advice.household import Advice, Choice, Variant
    from bakeoff.advice.rule import Verdict
    from bakeoff.measure import Interval
    from bakeoff.scenario.access_line import Asked
    from bakeoff.scenario.run import Flow, Qdisc
    from bakeoff.scenario.run import Run as ResolvedRun

_LINKS = {
    "plain": "Rates count packets as Linux does, with 14 bytes of Ethernet header and without what a kind of line adds",
    "ethernet": "The line is Ethernet: each packet takes 38 bytes more than IP says, and at least 84",
    "docsis": "The line is cable (DOCSIS): each packet takes 18 bytes more than IP says, and at least 64. The modem's "
    "waiting for its turn to send is not in these numbers",
    "vdsl": "The line is VDSL with PPPoE: each packet takes 30 bytes more than IP says, and 65 bytes carry 64",
    "adsl": "The line is ADSL with PPPoE: each packet takes 40 bytes more than IP says, and cells of 53 bytes carry 48",
}

_CONTROLS = {
    "cubic": "cubic is what most computers send with, and slows down when packets are lost or marked",
    "prague": "prague speaks L4S: it answers every mark a little, so that a queue that marks early can stay very short",
    "bbr": "bbr is BBR version 1, as Linux has it: it sends at the rate that it measures, and hardly heeds loss and "
    "marks; some large servers use it, and others use version 3, which heeds heavy loss and marks (bbr3 in a household "
    "of your own, --mix)",
    "bbr3": "bbr3 is BBR version 3: it sends at the rate that it measures, and heeds heavy loss and marks; some large "
    "servers use it",
}


def title(asked: Asked) -> str:
    """Which line this is about."""
    from bakeoff.scenario.units import parse_time

    there = f"{parse_time(asked.rtt) * 1e3:g} ms to servers and back"
    return f"A line of {_rate(asked.up)} up and {_rate(asked.down)} down, {there}, in a busy household"


def recommendation(advice: Advice) -> list[str]:
    """The answer, why, how sure it is, what it costs, and what changes it: one paragraph each."""
    main = advice.main
    verdict = main.verdict
    chosen = main.choice(verdict.choice)
    paragraphs = [
        f"Recommended: {named(main.choices, verdict.choice)}. That is: {clean(chosen.words.sentence)}.",
        " ".join([_needs(verdict, chosen.means), *_against(main, verdict)]),
        _sure(main, verdict),
        f"What it takes: {_lower(clean(chosen.words.cost))}",
    ]
    if main.at_home is not None:
        paragraphs.append(_at_home(main, main.at_home))
    paragraphs += [_otherwise(advice, other) for other in advice.variants[1:]]
    return [paragraph for paragraph in paragraphs if paragraph]


def rule(advice: Advice) -> list[str]:
    """The rule that recommends, and the needs that it asks about."""
    needs = [measure.need for measure in advice.measures if measure in NEEDS]
    return [
        f"The rule: the choices that meet most of the needs below stay; of these, those whose call is at most "
        f"{CLOSE_S * 1e3:g} ms slower than the quickest; of these, the one whose long transfers move most.",
        f"The needs: {'; '.join(needs)}.",
    ]


def assumptions(asked: Asked, advice: Advice) -> list[str]:
    """What was assumed of the line, of the household and of the choices, as far as the runs know it."""
    first = advice.main.choices[0].results[0]
    run = Run(first)
    window = run.summary.window_s
    return [
        f"{_LINKS[asked.link]}. What the line does without management holds {_buffers(asked)}.",
        *_traffic(run, advice),
        "No packet asks for a better class than others, and the call does not speak L4S. Nobody on the path takes "
        "marks away, and nothing is lost but in these queues.",
        "The home network is faster than the line. Wi-Fi adds delays of its own, which none of these choices changes.",
        f"Each run lasts {first.run.duration_s:g} s. What happens in the first {window[0]:g} s is not counted, nor "
        f"are pages that begin in the last {GRACE_S:g} s. {_repetitions(advice)}",
    ]


def choices(advice: Advice) -> list[tuple[str, str]]:
    """Each choice, and what the two ends of the line and the router do then, in tc's words."""
    return [(named(advice.main.choices, choice.label), _in_tc(choice)) for choice in advice.main.choices]


def commands(advice: Advice) -> list[tuple[Choice, list[str]]]:
    """The choices that have to be set up, with the commands for whoever does it: at the line's ends, or in the router.

    `UP` and `DOWN` stand for the interfaces that send up and down.
    """
    return [
        (choice, lines)
        for choice in advice.main.choices
        if choice.words.where != "nowhere" and (lines := _commands(choice))
    ]


def variant(of: Variant) -> str:
    """The name of a mix: `without bbr`."""
    return clean(of.label.replace("-", " "))


def _rate(text: str) -> str:
    from bakeoff.scenario.units import parse_rate

    bps = parse_rate(text)
    return f"{bps / 1e6:g} Mbit/s" if bps < 1e9 else f"{bps / 1e9:g} Gbit/s"


def _needs(verdict: Verdict, means: Mapping[str, Any]) -> str:
    asked = [need for need in NEEDS if need.key in means]
    if not verdict.missed:
        return f"It meets all {len(asked)} needs that are listed below."
    missed = "; ".join(need.need for need in verdict.missed)
    met = f"{len(asked) - len(verdict.missed)} of the {len(asked)} needs"
    return f"It meets {met} that are listed below, and misses: {missed}."


def _against(of: Variant, verdict: Verdict) -> list[str]:
    """How the runner-up compares."""
    if verdict.runner_up is None:
        return []
    other = f"The next is {named(of.choices, verdict.runner_up)}"
    apart = verdict.difference
    if apart is None:
        lacking = [need for need in verdict.runner_up_missed if need not in verdict.missed]
        return [f"{other}, which misses: {'; '.join(need.need for need in lacking)}."]
    if verdict.reason == "delay":
        return [f"{other}, which meets as many, but whose call arrives {_apart(apart, 1e3, 'ms')} later."]
    less = _apart({"n": apart["n"], "mean": -apart["mean"], "ci95": apart["ci95"]}, 1e-6, "Mbit/s")
    quick = f" and whose call is as quick to {CLOSE_S * 1e3:g} ms," if DELAY in of.choice(verdict.choice).means else ""
    return [f"{other}, which meets as many,{quick} but whose long transfers move {less} less."]


def _apart(difference: Interval, by: float, unit: str) -> str:
    mean = difference["mean"] * by
    around = "" if difference["ci95"] is None else f" ±{figure(difference['ci95'] * by, like=mean)}"
    return f"{figure(mean)}{around} {unit}"


def _sure(of: Variant, verdict: Verdict) -> str:
    """How many repetitions agree, and whether chance could have made the difference."""
    count = len(verdict.alone)
    if count == 1:
        return "How sure: not at all, because there is one repetition; --seeds 5 makes five."
    if verdict.agreeing == count:
        text = f"How sure: each of the {count} repetitions, taken alone, gives the same answer."
    else:
        others = Counter(one for one in verdict.alone if one != verdict.choice)
        answers = ", ".join(f"{named(of.choices, label)} ({times})" for label, times in others.items())
        text = (
            f"How sure: {verdict.agreeing} of the {count} repetitions, taken alone, give the same answer; the others "
            f"give {answers}."
        )
    apart = verdict.difference
    if apart is not None and apart["ci95"] is not None:
        if apart["ci95"] >= abs(apart["mean"]):
            text += " Chance alone could make the difference to the next, so that either is a good choice."
        else:
            text += " The difference to the next is larger than chance makes it (95 % interval)."
    if verdict.reason == "needs" and _by_chance(of, verdict):
        text += " What the next misses, it misses by no more than chance alone could make (95 % interval)."
    return text


def _by_chance(of: Variant, verdict: Verdict) -> bool:
    """Whether the bounds of what only the runner-up misses lie within its intervals."""
    assert verdict.runner_up is not None
    other = of.choice(verdict.runner_up)
    for need in verdict.runner_up_missed:
        known = other.interval(need.key)
        if need in verdict.missed or known is None or need.bound is None:
            continue
        if need.relative or known["ci95"] is None or abs(known["mean"] - need.bound) > known["ci95"]:
            return False
    return True


def _at_home(of: Variant, verdict: Verdict) -> str:
    chosen = of.choice(verdict.choice)
    if chosen.words.where == "nowhere":
        return f"What a household can do alone: nothing that the rule prefers to {named(of.choices, verdict.choice)}."
    text = (
        f"What a household can do alone: {named(of.choices, verdict.choice)}, that is: {clean(chosen.words.sentence)}. "
    )
    return text + f"{_needs(verdict, chosen.means)} {clean(chosen.words.cost)}"


def _otherwise(advice: Advice, other: Variant) -> str:
    """What the rule says of the same household with another mix."""
    if other.verdict.choice == advice.main.verdict.choice:
        text = "the rule gives the same answer"
    else:
        text = f"the rule gives {named(other.choices, other.verdict.choice)}"
    if other.at_home is not None and other.at_home.choice != other.verdict.choice:
        text += f", and {named(other.choices, other.at_home.choice)} for a household alone"
    needs = _needs(other.verdict, other.choice(other.verdict.choice).means)
    return f"The same household, {variant(other)}: {text}. {needs}"


def _buffers(asked: Asked) -> str:
    from bakeoff.scenario.access_line import filled

    line = filled(asked)
    parts = []
    for way, rate in (("up", asked.up), ("down", asked.down)):
        from bakeoff.scenario.units import parse_rate

        held = int(line[f"buffer_{way}"])
        parts.append(f"{held / 1e3:g} kB {way} ({figure(8e3 * held / parse_rate(rate))} ms)")
    return " and ".join(parts)


def _traffic(run: Run, advice: Advice) -> list[str]:
    """What the people on the line do, in the main variant."""
    found = []
    flows = run.document.flows
    found += _transfers(run)
    controls = [parse(flow.cc).name for flow in flows if flow.transport == "tcp"]
    known = [_CONTROLS[name] for name in dict.fromkeys(controls) if name in _CONTROLS]
    if known:
        found.append(f"{'; '.join(known)[:1].upper()}{'; '.join(known)[1:]}.")
    for flow in flows:
        source = flow.source
        if isinstance(source, Short):
            # The whole schedules of all repetitions, of which the runs take the beginning.
            schedules = [_schedule(each.run, flow.name) for each in advice.main.choices[0].results]
            objects = [each for schedule in schedules for each in schedule]
            if objects:
                ends = sum(schedule[-1][0] - flow.start_s for schedule in schedules if schedule)
                every = ends / len(objects)
                size = f"{median(size for _, size in objects) / 1e3:.0f} kB"
                found.append(
                    f"A web page every {every:.1f} s on average, of {size} in the median, each fetched over a "
                    f"connection of its own ({clean(flow.cc)})."
                )
        if isinstance(source, Video):
            rates = [rate / 1e6 for rate in source.rates_bps]
            found.append(
                f"A video that adapts between {min(rates):g} and {max(rates):g} Mbit/s and can be buffered for "
                f"{source.buffer_s:g} s ({clean(flow.cc)})."
            )
    calls = [flow for flow in flows if flow.transport == "udp"]
    for what in dict.fromkeys(_datagrams(flow) for flow in calls):
        ways = Counter(run.way(flow) for flow in calls if _datagrams(flow) == what)
        found.append(
            f"A call, {' and '.join(sorted(ways, reverse=True))}: {what}. It does not slow down where packets are lost."
        )
    for probe in run.document.probes:
        l4s = ", which is marked as L4S," if probe.ecn == "ect1" else ""
        found.append(f"A game: a packet of {probe.size} bytes every {probe.every_s * 1e3:g} ms{l4s} and its answer.")
    mine = set(_transfers(run))
    for other in advice.variants[1:]:
        unlike = [line for line in _transfers(Run(other.choices[0].results[0])) if line not in mine]
        differs = f"has other transfers: {' '.join(unlike)}" if unlike else "differs in something else."
        found.append(f"That is the household {variant(advice.main)}. The one {variant(other)} {differs}")
    return found


def _schedule(run: ResolvedRun, name: str) -> list[tuple[float, int]]:
    """(when it begins [s], size [B]) of the objects of a short flow."""
    [found] = [flow.source for flow in run.flows if flow.name == name]
    return found.objects if isinstance(found, Short) else []


def _transfers(run: Run) -> list[str]:
    """The long transfers of each direction."""
    found = []
    for way, what in (("up", "upload"), ("down", "download")):
        names = list(run.transfers("up" if way == "up" else "down"))
        ccs = [flow.cc for flow in run.document.flows if flow.name in names]
        controls = [clean(cc) + (" (L4S)" if is_l4s(cc) else "") for cc in ccs]
        if names:
            head = f"{len(names)} {what}s that never end" if len(names) > 1 else f"One {what} that never ends"
            found.append(f"{head}: {', '.join(controls)}.")
    return found


def _datagrams(flow: Flow) -> str:
    source = flow.source
    if isinstance(source, Periodic):
        count = f"{source.count} packets" if source.count > 1 else "a packet"
        return f"{count} of {source.size} bytes of sound or picture every {source.every_s * 1e3:g} ms"
    if isinstance(source, ConstantRate):
        return f"{source.rate_bps / 1e3:g} kbit/s in packets of {source.size} bytes"
    return "datagrams as fast as they go"


def _repetitions(advice: Advice) -> str:
    count = len(advice.main.choices[0].each)
    if count == 1:
        return "There is one repetition of each."
    return (
        f"There are {count} repetitions of each, which differ by chance; numbers are means over them, and ± is half of "
        "the 95 % interval."
    )


def _in_tc(choice: Choice) -> str:
    """What stands in the queues of the line's two ends and of the router."""
    result = choice.results[0]
    summary = Run(result).summary
    up, down = line_ends(result.run)
    parts = []
    for rated in summary.rated:
        names = rated.queues or [rated.queue]
        qdiscs = [summary.queues[name].qdisc for name in names if name in summary.queues]
        label = {f"{up[0]}>{up[1]}": "line, up", f"{down[0]}>{down[1]}": "line, down"}.get(rated.hop, rated.hop)
        parts += [f"{clean(label)}: {clean(qdisc)}" for qdisc in qdiscs]
    return "; ".join(parts)


def _commands(choice: Choice) -> list[str]:
    run = choice.results[0].run
    ahead = {link.ends for link in run.links}
    lines: list[str] = []
    for interface in run.interfaces:
        tree = interface.egress
        at_line = interface.node == LINE
        if tree is None or at_line != (choice.words.where == "line"):
            continue
        device = "UP" if (interface.node, interface.peer) in ahead else "DOWN"
        lines += _of_tree(tree, device)
    return [clean(line) for line in lines]


def _of_tree(tree: Qdisc, device: str) -> list[str]:
    """A qdisc, or htb with one level of classes, as tc sets it up."""
    classes = tree.classes
    root = f"tc qdisc replace dev {device} root"
    lines = [f"{root} handle 1: {tree.qdisc}" if classes or tree.child else f"{root} {tree.qdisc}"]
    for class_ in classes:
        lines.append(f"tc class replace dev {device} parent 1: classid 1:{class_.id} htb {class_.class_}")
        if class_.child:
            lines.append(f"tc qdisc replace dev {device} parent 1:{class_.id} {class_.child.qdisc}")
    if tree.child:
        lines.append(f"tc qdisc replace dev {device} parent 1:1 {tree.child.qdisc}")
    return lines


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
