"""What people see of results: tables, pictures, text. Computes nothing that `measure` and `claims` do not define."""
