def duel(result, console) -> None:
    console.print(f"shares of {result.resolved['run']}")
