"""Engine `ssh`: a testbed, every node of a run a machine that is reached over ssh."""
