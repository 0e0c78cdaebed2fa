"""The lab: a resolved run as exact commands for real Linux, and what its agent measured as a results folder."""

from bakeoff.engines.lab.plan import Command, Plan, Queue, TimedCommand
from bakeoff.engines.lab.planner import plan
from bakeoff.engines.lab.topology import Device, Machines

__all__ = ["Command", "Device", "Machines", "Plan", "Queue", "TimedCommand", "plan"]
