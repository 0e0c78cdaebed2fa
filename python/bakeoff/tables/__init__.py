"""Results as rows of numbers with names and units, and the tables that show them. Computes no measure."""
