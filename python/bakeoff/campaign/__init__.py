"""Campaigns: many independent runs, in parallel processes, into one results folder."""

from bakeoff.campaign.begin import Asked
from bakeoff.campaign.place import DUELS, LATEST, LATEST_DUEL, latest, new_folder
from bakeoff.campaign.schedule import Report, cores, run
from bakeoff.campaign.worker import Done

__all__ = ["DUELS", "LATEST", "LATEST_DUEL", "Asked", "Done", "Report", "cores", "latest", "new_folder", "run"]
