def render(results, *, format, reference, kind=None, columns=None, sort=None, condition=None) -> str:  # noqa: A002 (the real one's word)
    rows = "".join(f"{result.run.run},{result.run.seed}\n" for result in results)
    return f"run,seed\n{rows}" if format == "csv" else f"{format} beside {reference}\n{rows}"
