"""Pictures of the fake runs: their names, as text."""
