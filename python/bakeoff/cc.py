"""The numbers that a congestion control in Python is told, in Linux's names: docs/python-congestion-control.md."""

from enum import IntEnum


class CaState(IntEnum):
    """`inet_csk_ca_state`: `sk.ca_state` and the argument of `set_state`."""

    OPEN = 0
    DISORDER = 1
    CWR = 2
    RECOVERY = 3
    LOSS = 4


class CaEvent(IntEnum):
    """`tcp_ca_event`: the argument of `cwnd_event`."""

    TX_START = 0
    CWND_RESTART = 1
    COMPLETE_CWR = 2
    LOSS = 3
