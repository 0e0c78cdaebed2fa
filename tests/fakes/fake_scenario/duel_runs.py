"""Several duels of the fakes."""

from bakeoff.scenario import Run, duel


def duels(asked, *, seeds=1, yes=False) -> list[Run]:
    return [duel(each, seed=seed) for each in asked.each() for seed in range(1, seeds + 1)]
