"""Qdisc lines that ours and the real tc must take alike: every kind with its defaults and with each parameter."""

from __future__ import annotations

LINES = """
pfifo
pfifo limit 100
pfifo limit 1
pfifo limit 100p
pfifo limit 1k
pfifo limit 0x10
bfifo
bfifo limit 150000
bfifo limit 15k
pfifo_fast
prio
prio bands 4
prio bands 17
prio bands 1
prio bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1
codel
codel limit 100
codel limit 100p
codel target 1ms
codel interval 20ms
codel ecn
codel noecn
codel ce_threshold 1ms
codel target 999us interval 10ms ecn limit 20000
fq_codel
fq_codel flows 1
fq_codel limit 500
fq_codel quantum 300
fq_codel quantum 100
fq_codel target 1ms interval 20ms
fq_codel memory_limit 4Mb
fq_codel memory_limit 123456
fq_codel drop_batch 32
fq_codel noecn
fq_codel ce_threshold 1ms
fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x3
fq_codel flows 65536 limit 1
pie
pie limit 100
pie target 5ms
pie tupdate 32ms
pie tupdate 30ms
pie alpha 3
pie beta 30
pie ecn
pie noecn
pie bytemode
pie dq_rate_estimator
pie limit 100 target 5ms tupdate 32ms alpha 2 beta 20 ecn
fq_pie
fq_pie limit 500
fq_pie flows 1
fq_pie target 5ms
fq_pie tupdate 32ms
fq_pie alpha 3 beta 30
fq_pie quantum 300
fq_pie memory_limit 4Mb
fq_pie ecn_prob 20
fq_pie ecn
fq_pie bytemode
fq_pie dq_rate_estimator
red limit 400000 avpkt 1000
red limit 150000 avpkt 1000 bandwidth 50mbit
red limit 400000 avpkt 1000 adaptive bandwidth 50mbit ecn
red limit 400000 avpkt 1000 min 10000
red limit 400000 avpkt 1000 max 60000 burst 40
red limit 400000 avpkt 1000 min 20000 max 60000 probability 0.1
red limit 400000 avpkt 1000 ecn harddrop
red limit 400000 avpkt 1000 ecn nodrop
sfq
sfq limit 100
sfq perturb 10
sfq quantum 3000
sfq quantum 100
sfq depth 64
sfq divisor 512
sfq flows 64
sfq headdrop
sfq limit 1
sfq divisor 1000
sfq flows 2000
sfq limit 3000 flows 512 divisor 16384
sfq limit 3000 depth 24 headdrop min 8000 max 60000 probability 0.20 ecn redflowlimit 100000
sfq redflowlimit 100000 harddrop ecn
tbf rate 50mbit burst 5kb latency 50ms
tbf rate 50mbit burst 5000 limit 150000
tbf rate 1mbit burst 5kb latency 70ms peakrate 2mbit minburst 1540
tbf rate 220mbit burst 100k limit 1mb mpu 64
tbf rate 10mbit burst 10kb limit 100k overhead 20 linklayer atm
tbf rate 50mbit buffer 20k/8 limit 30k
tbf rate 50mbit burst 5k limit 1000
tbf rate 50mbit burst 5k
dualpi2
dualpi2 limit 1000
dualpi2 target 20ms
dualpi2 tupdate 32ms
dualpi2 alpha 0.2
dualpi2 beta 4
dualpi2 typical_rtt 30ms max_rtt 200ms
dualpi2 coupling_factor 3
dualpi2 step_thresh 2ms
dualpi2 step_thresh 3p
dualpi2 min_qlen_step 2
dualpi2 drop_on_overload
dualpi2 overflow
dualpi2 drop_enqueue
dualpi2 drop_dequeue
dualpi2 l4s_ect
dualpi2 any_ect
dualpi2 split_gso
dualpi2 no_split_gso
dualpi2 classic_protection 5%
dualpi2 memlimit 1000000
fq
fq limit 500
fq flow_limit 50
fq quantum 1514 initial_quantum 3028
fq maxrate 10mbit
fq buckets 512
fq ce_threshold 1ms
fq nopacing
fq horizon 5s
cake
cake bandwidth 50mbit
cake bandwidth 50mbit besteffort
cake bandwidth 50mbit diffserv4 dual-srchost nat
cake bandwidth 20mbit ingress ack-filter rtt 20ms
cake bandwidth 20mbit overhead 20 mpu 64 atm
cake flowblind docsis
netem limit 100
netem delay 10ms
netem delay 10ms limit 1000000
netem delay 10ms 2ms
netem delay 10ms 2ms 25%
netem delay 10ms 2ms distribution normal
netem delay 10ms 2ms distribution pareto
netem delay 10ms 2ms 10% distribution paretonormal
netem delay 10ms 2ms distribution uniform
netem loss 1%
netem loss 0.3% 25%
netem loss random 5%
netem loss 5% ecn
netem loss state 1%
netem loss state 1% 90%
netem loss state 1% 90% 10% 50% 0.1%
netem loss gemodel 1%
netem loss gemodel 1% 10%
netem loss gemodel 1% 10% 70% 0.1%
netem duplicate 1%
netem duplicate 1% 10%
netem corrupt 0.1%
netem corrupt 0.1% 5%
netem delay 10ms reorder 25%
netem delay 10ms reorder 25% 50% gap 5
netem rate 5mbit
netem rate 5mbit 20
netem rate 5mbit 20 48 5
netem rate 1mbit -10
netem slot 800us
netem slot 800us 10ms packets 42
netem slot 1ms 2ms bytes 64k
netem slot distribution normal 5ms 1ms
netem loss state 1% ecn
netem delay 10ms 2ms distribution experimental
netem slot distribution pareto 5ms 1ms packets 4 bytes 3000
netem seed 42 loss 1%
netem delay 1ms 100us loss 1% duplicate 1% corrupt 1% rate 100mbit
""".strip().splitlines()

CLASSES = {
    "htb default 1": ["1: 1 rate 50mbit ceil 50mbit"],
    "htb default 10 r2q 100": ["1: 10 rate 50mbit burst 10k cburst 15k prio 3"],
    "htb direct_qlen 20": ["1: 1 rate 33mbit quantum 3000 mtu 9000", "1: 2 rate 1mbit ceil 2mbit"],
    "htb default 21": [
        "1: 1 rate 100mbit",
        "1:1 10 rate 30mbit ceil 100mbit prio 1",
        "1:1 20 rate 60mbit ceil 80mbit quantum 60000",
        "1:20 21 rate 10mbit ceil 80mbit overhead 20 mpu 64 linklayer atm",
    ],
}
"""htb's lines with their classes: parent, minor number, and tc's words."""

DIFFERENT = {
    "netem delay 10ms 2ms distribution experimental": "a measured table of iproute2's, not modelled",
    "netem duplicate 1% 10%": "tc does not print the correlation of duplicate, whether the kernel has it or not",
}
"""Lines on which we differ from tc, with the reason."""

WITHOUT_TABLE = frozenset({"netem delay 10ms 2ms distribution uniform"})
"""Lines that tc refuses because there is no such table."""
