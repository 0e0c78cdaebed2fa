"""What others published about the experiments, and how near our results are. Compares; never runs anything."""
