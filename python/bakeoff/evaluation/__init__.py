"""Evaluation of a congestion control: batteries of cases, their runs, the verdicts and the report."""
