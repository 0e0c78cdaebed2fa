"""Campaigns: many independent runs, in parallel processes, into one results folder."""

from bakeoff.campaign.place import latest, new_folder, point_latest
from bakeoff.campaign.schedule import Report, cores, run
from bakeoff.campaign.worker import Done

__all__ = ["Done", "Report", "cores", "latest", "new_folder", "point_latest", "run"]
