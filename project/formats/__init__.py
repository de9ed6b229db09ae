"""How Django's own pages write times."""
