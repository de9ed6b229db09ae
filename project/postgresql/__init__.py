"""A database engine: Django's own for PostgreSQL, with an end to waiting."""
