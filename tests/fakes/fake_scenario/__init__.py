"""Scenarios of the fakes: a run is its document."""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    document: str

    @property
    def key(self) -> str:
        fields = json.loads(self.document)
        repetition = f"~seed{fields['seed']}" if fields["seed"] > 1 else ""
        return f"{fields['suite']}/{fields['scenario']}/{fields['run']}{repetition}"

    @property
    def duration_s(self) -> float:
        return json.loads(self.document)["duration_s"]

    def to_json(self) -> str:
        return self.document

    @classmethod
    def from_json(cls, text: str) -> "Run":
        return cls(text)


def make(run: str, seed: int = 1, scenario: str = "s1-first", **point: str) -> Run:
    """A run with just the fields that results, campaign and cli read."""
    interfaces = [{"egress": {"classes": [{"class": "rate 12mbit ceil 12mbit"}]}}]
    fields = {
        "format": 1,
        "suite": "fake",
        "scenario": scenario,
        "run": run,
        "title": "",
        "seed": seed,
        "duration_s": 60.0,
        "window_s": [18.0, 58.0],
        "flows": [],
        "interfaces": interfaces,
        "point": point,
    }
    return Run(json.dumps(fields))
