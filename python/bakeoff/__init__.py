"""A laboratory for congestion control that fits in a laptop."""
