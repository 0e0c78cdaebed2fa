import json


def render(results, *, format, reference) -> str:  # noqa: A002
    rows = [{"run": result.resolved["run"], "seed": result.resolved["seed"]} for result in results]
    return json.dumps({"format": format, "reference": reference, "rows": rows}) + "\n"
