"""The language of expressions and its quantities, which claims, conditions of tables and options share."""
