"""Campaigns: many independent runs, in parallel processes, into one results folder."""

from bakeoff.campaign.begin import Asked
from bakeoff.campaign.place import ADVICE, DUELS, LATEST, LATEST_ADVICE, LATEST_DUEL, VERIFY, latest, new_folder
from bakeoff.campaign.schedule import Report, accepted, cores, missing, run
from bakeoff.campaign.worker import Done

__all__ = [
    "ADVICE",
    "DUELS",
    "LATEST",
    "LATEST_ADVICE",
    "LATEST_DUEL",
    "VERIFY",
    "Asked",
    "Done",
    "Report",
    "accepted",
    "cores",
    "latest",
    "missing",
    "new_folder",
    "run",
]
