"""The JSON Schema of the language, and the page about it."""

import json
import re
from pathlib import Path

from bakeoff.scenario import json_schema
from scenario_texts import one, runs

# The page about the language


def test_the_examples_of_the_page_expand(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "scenario-language.md").read_text()
    small, network, flows, when = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert [run.run for run in runs(tmp_path, small)] == ["fq_codel", "pie ecn"]
    assert len(one(tmp_path, "duration: 60s\n" + network + flows + when).flows) == 12


# The schema


def test_the_schema_describes_every_key_of_the_top_level():
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"].startswith("urn:")
    assert schema["title"]
    assert schema["additionalProperties"] is False
    assert schema["required"] == []  # the file name and a profile may hold any of them
    described = {name for name, field in schema["properties"].items() if "description" in field}
    assert described >= {"duration", "vary", "title", "changes", "run", "start_jitter", "exclude"}
    json.dumps(schema)


def test_what_stands_below_a_key_in_its_class_describes_it():
    defined = json_schema()["$defs"]
    flow = defined["FlowSpec"]["properties"]
    # Of a key that is a word of Python, of several lines, and of one that has no text.
    assert flow["from"]["description"] == "Sending host; the path's first if absent."
    assert flow["ecn"]["description"].splitlines()[1] == "`dscp_to_notect`; `dscp_to_notect_ect1`."
    assert "description" not in flow["transport"]
    # `Bottleneck` has keys of `Lane`.
    inherited = defined["Lane"]["properties"].keys() & defined["Bottleneck"]["properties"].keys()
    assert {key for key in inherited if "description" in defined["Lane"]["properties"][key]}
    for key in inherited:
        one, other = (defined[name]["properties"][key].get("description") for name in ("Lane", "Bottleneck"))
        assert one == other


def test_every_reference_of_the_schema_exists():
    schema = json_schema()
    text = json.dumps(schema)
    named = {part.split('"')[0] for part in text.split('"#/$defs/')[1:]}
    assert named <= schema["$defs"].keys()


def test_a_placeholder_may_stand_for_any_value_in_the_schema():
    flow = json_schema()["$defs"]["FlowSpec"]["properties"]
    for key in ("rtt", "dscp", "ecn", "count", "source"):
        assert {"$ref": "#/$defs/placeholder"} in flow[key]["anyOf"], key
