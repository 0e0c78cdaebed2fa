def duel(result, console) -> None:
    console.print(f"shares of {result.run.run}")


def text(result) -> str:
    return f"shares of {result.run.run}"
