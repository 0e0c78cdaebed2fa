"""Pictures of results with matplotlib: what `bakeoff plot` and `Result.plot` draw. Computes no measure."""
