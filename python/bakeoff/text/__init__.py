"""Text for a terminal, Markdown, LaTeX and HTML: columns, blocks of tables, escapes, templates."""
