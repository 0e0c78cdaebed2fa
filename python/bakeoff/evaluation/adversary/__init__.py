"""The adversary: a search for the scenario in which a measure of a control is worst beside the baseline."""
