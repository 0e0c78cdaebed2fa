"""Stimuli: what is done to a flow when its sender comes into a state (`when`)."""

from typing import Final, Literal

from bakeoff.scenario import conditions
from bakeoff.scenario import run as resolved
from bakeoff.scenario.cc_variables import variables
from bakeoff.scenario.changes import End, for_a_while
from bakeoff.scenario.error import DocumentError, did_you_mean
from bakeoff.scenario.language import ChangeSpec, Document, FlowSpec, Source, StimulusSpec
from bakeoff.scenario.sources import source

EFFECTS: Final = ("drop", "mark", "delay", "hold", "rate", "rtt", "source")
_OF_NETWORK: Final = ("rate", "rtt")


def resolve_stimuli(
    doc: Document, flows: list[FlowSpec], interfaces: list[resolved.Interface]
) -> list[resolved.Stimulus]:
    """The stimuli of the document; DocumentError for what does not fit its flows or its network."""
    found: list[resolved.Stimulus] = []
    for index, spec in enumerate(doc.when):
        place = f"when[{index}]"
        asked = [key for key in EFFECTS if getattr(spec, key) not in (None, False)]
        if len(asked) != 1:
            raise DocumentError(
                place, f"has {' and '.join(asked) or 'no effect'}; expected one of {', '.join(EFFECTS)}"
            )
        name = spec.name or asked[0]
        if any(name == other.name for other in found):
            raise DocumentError(f"{place}.name", f"duplicate name '{name}'; expected unique names")
        found.append(
            resolved.Stimulus(
                name=name,
                flow=_flow(spec, flows, place).name,
                state=_state(spec, flows, doc.idle, place),
                after_s=spec.after,
                for_s=spec.for_,
                each=spec.times == "each",
                effect=_effect(doc, spec, asked[0], interfaces, place),
            )
        )
    return found


def _flow(spec: StimulusSpec, flows: list[FlowSpec], place: str) -> FlowSpec:
    names = [flow.name for flow in flows]
    if spec.flow is None and len(flows) != 1:
        raise DocumentError(place, f"ambiguous flow; expected 'flow' with one of {', '.join(names[:20])}")
    wanted = names[0] if spec.flow is None else spec.flow
    if wanted not in names:
        raise DocumentError(f"{place}.flow", f"'{wanted}': unknown flow{did_you_mean(wanted, names)}")
    flow = flows[names.index(wanted)]
    if flow.transport != "tcp" or flow.source.short is not None:
        raise DocumentError(f"{place}.flow", f"'{wanted}': expected a flow with one TCP connection")
    if spec.source is not None and flow.source.video is not None:
        raise DocumentError(f"{place}.source", f"'{wanted}' plays a video; expected a flow with another source")
    return flow


def _state(spec: StimulusSpec, flows: list[FlowSpec], idle_s: float, place: str) -> list[resolved.Term]:
    """The terms. A variable that another control has is no error: the stimulus does not happen."""
    cc = str(_flow(spec, flows, place).cc)
    try:
        terms = conditions.parse(spec.state, any_name=variables(cc) is None)
    except ValueError as error:
        raise DocumentError(f"{place}.state", str(error)) from None
    late = {conditions.TIME: idle_s}
    return [
        resolved.Term(variable=term.variable, is_=term.is_, value=term.value + late.get(term.variable, 0.0))
        for term in terms
    ]


def _effect(
    doc: Document, spec: StimulusSpec, asked: str, interfaces: list[resolved.Interface], place: str
) -> resolved.Effect:
    if asked not in _OF_NETWORK and (spec.node is not None or spec.direction != "both"):
        key = "node" if spec.node is not None else "direction"
        raise DocumentError(f"{place}.{key}", f"only valid with {' or '.join(_OF_NETWORK)}")
    if spec.hold:
        if spec.for_ is None:
            raise DocumentError(place, "'hold' without an end; expected 'for'")
        return resolved.Hold()
    if spec.source is not None:
        return _new_source(spec.source, place)
    if asked in _OF_NETWORK:
        change = ChangeSpec.model_construct(
            at=0.0, node=spec.node, direction=spec.direction, rate=spec.rate, rtt=spec.rtt
        )
        begin, end = for_a_while(doc, change, interfaces, place)
        return resolved.ChangeNetwork(begin=_placed(begin), end=_placed(end) if spec.for_ is not None else [])
    if spec.delay is not None:
        return resolved.DelayPackets(delay_s=spec.delay)
    word, number = (spec.drop or spec.mark or "").split()
    every, most = (int(number), None) if word == "every" else (1, int(number))
    return resolved.Drop(every=every, most=most) if spec.drop else resolved.Mark(every=every, most=most)


def _new_source(spec: Source | Literal["none"], place: str) -> resolved.ChangeSource:
    if spec == "none":
        return resolved.ChangeSource(source=None)
    if spec.short is not None or spec.video is not None:
        raise DocumentError(f"{place}.source", "expected bulk, none, bytes, rate or periodic")
    return resolved.ChangeSource(source=source(spec, 0, ""))


def _placed(actions: list[tuple[End, resolved.Action]]) -> list[resolved.Placed]:
    return [resolved.Placed(node=end[0], peer=end[1], action=action) for end, action in actions]
