"""The results folder: the only interface between engines and everything that reads results.

docs/results-folder.md defines the format. `read` and `scan` read it; `writing` and `seal` write it.
"""

from bakeoff.errors import HalfWrittenError
from bakeoff.results.epochs import epoch_warning, epochs
from bakeoff.results.measured import measured, write_measured
from bakeoff.results.metadata import CampaignRecord, Provenance, RunRecord, Taken
from bakeoff.results.read import Result, Survey, folders, read, read_campaign, scan, survey
from bakeoff.results.request import Kept, Kind, Request
from bakeoff.results.series import digest, parts, table, write_parts, write_series
from bakeoff.results.write import and_earlier, below, discard_partials, seal, write_campaign, write_json, writing

__all__ = [
    "CampaignRecord",
    "HalfWrittenError",
    "Kept",
    "Kind",
    "Provenance",
    "Request",
    "Result",
    "RunRecord",
    "Survey",
    "Taken",
    "and_earlier",
    "below",
    "digest",
    "discard_partials",
    "epoch_warning",
    "epochs",
    "folders",
    "measured",
    "parts",
    "read",
    "read_campaign",
    "scan",
    "seal",
    "survey",
    "table",
    "write_campaign",
    "write_json",
    "write_measured",
    "write_parts",
    "write_series",
    "writing",
]
