"""Pages from templates and results: every number, table, picture and verdict on them is looked up, none is typed.

A template may come from anybody. It runs in a process of its own (`sandbox`) that reads no file and has bounds on time,
memory and output; that process asks this one (`page`) for everything that it shows, and `functions` answers from
results.
"""
