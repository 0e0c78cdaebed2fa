"""What others published about the experiments, and how near our results are. Compares; never runs anything."""

from typing import Final

SEEDS: Final = 5
"""Repetitions of each run that decide a claim by default."""
