"""Every key of the language, spoilt in every way: the message names a place that stands in the file, in its words."""

import copy
import re

import pytest
import yaml

from bakeoff.errors import BakeoffError
from bakeoff.scenario import json_schema
from bakeoff.scenario.scenario import expand, from_document

WHOLE = yaml.safe_load("""
scenario: x
suite: mine
title: t
source: s
run: r
seeds: 1
duration: 60s
sample_interval: 50ms
start_jitter: 10ms
idle: 5s
network:
  path: [c2, m1, m2, s2]
  nodes: {m1: router, m2: {kind: router, sysctl: {net.ipv4.ip_forward: 1}, hz: 250, offloads: false}}
  rtt: 80ms
  delay: {at: m1, limit: 100000, jitter: 1ms 10%, extra: loss 1%, child: netem slot 800us 5ms, up: 10ms, down: 70ms}
  bottleneck:
    - {at: m1, shape: htb rate 100mbit, qdisc: dualpi2, direction: both}
    - {at: m2, up: {rate: 10mbit, qdisc: pfifo}, down: {rate: [[0s, 20mbit], [5s, 9mbit]], qdisc: pie}}
  mangle:
    - {at: m2, from: m1, rule: dscp_to_tos, dscp: 3, tos: 1}
    - {at: m2, from: s2, match: {proto: udp, dscp: EF, flow: call, ecn: ect0, syn: false}, set_dscp: 0, set_ecn: ect1,
       clear_syn_ecn: true}
  tunnels: [{name: vpn, kind: ipsec, replay_window: 64, ends: [c2, s2], cipher: aes-gcm, inner_hash: true}]
  interfaces:
    - {node: c2, peer: m1, egress: fq, ingress: pie, tx_queue_len: 100}
    - {node: s2, peer: m2, mangle: [{rule: bleach_ce}],
       egress: {qdisc: htb default 1, classes: [{id: "1", words: rate 5mbit, filters: [{dscp: 3}], child: pie},
                                                {id: "2", parent: "1", words: rate 1mbit}]}}
  links:
    - {ends: [c2, m1], rate: 100mbit, delay: 1ms, loss: {c2: 1%, m1: [[0s, 0%], [5s, 2%]]}, mtu: 1500, down: [[5s, 6s]],
       police: {rate: 40mbit, burst: 100kB, exceed: drop, from: c2}}
    - {ends: [m2, s2], rate: [[0s, 10mbit], [10s, 50mbit]], wifi: {access: [100us, 900us], packets: 32, bytes: 10kB},
       half_duplex: {turnaround: 1us}, jitter: {wifi: 7ms}}
    - {ends: [m1, m2], rate: 1gbit, docsis: {modem: m1, interval: 2ms, pending: 2}}
    - {ends: [c2, s2], multipath: {by: flow, paths: [{weight: 2, rate: 1mbit, delay: 1ms, loss: 1%, limit: 10}]}}
hosts: {sysctl: {net.ipv4.tcp_ecn: 3}, hz: 250, offloads: false, stall: 5ms every 1s, timer_slack: 50us,
  receive_coalescing: 100us}
flows:
  - {name: web, source: {short: {count: 9, mean_gap: 20ms, size_p5: 64KiB, size_p95: 2MiB}}}
  - {name: call, transport: udp, source: {periodic: {size: 160B, every: 10ms, count: 1}}, dscp: EF}
  - {name: paced, max_pacing_rate: 50mbit, start: 10s, stop: 40s, tunnel: vpn}
  - {name: "down{n}", count: 3, cc: [bbr, cubic, reno], direction: down}
  - {name: far, from: c2, to: s2, ecn: bleached, dscp: 0x13}
  - {name: rate, source: {rate: 5mbit, size: 1200B}}
  - {name: bytes, source: {bytes: 10MB}}
  - {name: vid, source: {video: {rates: [1mbit, 2mbit], segment: 4s, buffer: 30s}}}
probes:
  - {name: l4s, type: udp, every: 10ms, ecn: ect1, size: 100B, dscp: 3, start: 1s, stop: 5s, from: c2, to: s2,
     tunnel: vpn}
changes:
  - {at: 30s, node: m1, rate: 10mbit, direction: up}
  - {at: 40s, node: m1, change: dualpi2 target 10ms}
  - {at: 50s, node: m1, replace: {rate: 50mbit, qdisc: pie}}
  - {at: 55s, interface: m2>s2, link: {up: false, rate: 5mbit, delay: 1ms, loss: 1%}}
  - {at: 56s, interface: m2>s2, side: egress, handle: "1", set_class: {id: "1", words: rate 1mbit}}
  - {at: 57s, node: m1, replace: {shape: htb rate 1mbit, qdisc: pie}}
  - {at: 58s, node: m1, rtt: 10ms, direction: up}
when:
  - {name: hurt, flow: paced, state: cc.cwnd > 9 and time >= 1s, after: 1ms, for: 5ms, times: each, drop: every 3}
  - {flow: paced, state: cc.state == loss, mark: next 5}
  - {flow: paced, state: time > 1s, delay: 5ms}
  - {flow: paced, state: time > 1s, for: 5ms, hold: true}
  - {flow: paced, state: time > 1s, for: 5ms, rate: 5mbit, node: m1, direction: up}
  - {flow: paced, state: time > 1s, for: 5ms, rtt: 5ms}
  - {flow: paced, state: time > 1s, source: {rate: 5mbit, size: 1000B}}
captures: [m1>m2]
tools: {flows: iperf3, probes: irtt}
measure: {steady_state: {window: 40s, ends: 2s before end}}
present: {rate_axis: [0mbit, 5mbit], rtt_axis: [0ms, 5ms], colours: {web: red}}
""")
WRONG = (5, "word", "-5ms", [], ["x", 3], {"k": 1})
ELSEWHERE = {"vary", "exclude", "profile", "trace", "programs", "exit", "reads", "probe"}
"""Keys that WHOLE cannot have: they have tests of their own."""


def spots(data, way=(), name=""):
    """(steps, place as messages write it) of everything in plain data."""
    yield way, name
    if isinstance(data, dict):
        for key, value in data.items():
            yield from spots(value, (*way, key), f"{name}.{key}" if name else key)
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from spots(value, (*way, number), f"{name}[{number}]")


def spoilt(way):
    """The document with what stands at `way` taken away, misspelt, or replaced by each of WRONG."""
    for what in ("missing", "misspelt", *WRONG):
        document = copy.deepcopy(WHOLE)
        inside = document
        for step in way[:-1]:
            inside = inside[step]
        if what == "misspelt":
            if isinstance(way[-1], int):
                continue
            inside[f"{way[-1]}x"] = inside.pop(way[-1])
        elif what == "missing":
            del inside[way[-1]]
        else:
            inside[way[-1]] = copy.deepcopy(what)
        yield what, document


def message(document):
    try:
        expand(from_document(document, path="x", suite="local", default_name="x"))
    except BakeoffError as error:
        return str(error).removeprefix("x: ")
    return None


def test_the_whole_is_a_scenario_and_has_every_key():
    assert message(WHOLE) is None
    schema = json_schema()
    keys = {key for part in (schema, *schema["$defs"].values()) for key in part.get("properties", {})}
    assert keys - {way[-1] for way, _ in spots(WHOLE) if way} == ELSEWHERE


@pytest.mark.parametrize("top", [key for key in WHOLE if key not in ("network", "flows")] + ["flows", "network"])
def test_a_message_names_a_place_of_the_file(top):
    for way, _ in spots(WHOLE):
        if not way or way[0] != top:
            continue
        for what, document in spoilt(way):
            said = message(document)
            if said is None:
                continue
            where = f"{'.'.join(map(str, way))} {what!r}: {said}"
            places = {name for _, name in spots(document)}
            place = re.match(r"(?:unknown key|(.+?): )", said)
            assert place is not None, where
            written = place[1] or ""
            parent = re.sub(r"(\.[^.\[]+|\[\d+\])$|^[^.\[]+$", "", written)
            missing = "is missing" in said or ": missing; " in said or "no bottleneck at" in said
            assert written in places or (missing and parent in places), where
            assert not re.search(r"function-|Input should|validation|None|True|False|\.(str|int)\b|literal", said), (
                where
            )
            assert len(said) < 400, where
