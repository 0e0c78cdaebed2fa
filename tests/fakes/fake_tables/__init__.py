"""Presentation of the fake runs: what was asked for, as text."""
