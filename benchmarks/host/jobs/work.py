"""What every job does, and where that is seen."""

from django.db import connection

TABLES = """
CREATE TABLE IF NOT EXISTS ordered (number int PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE IF NOT EXISTS done (number int NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
"""


def order(number: int) -> None:
    """Be the work that a job is sent along with."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO ordered (number) VALUES (%s)", [number])


def job(number: int) -> None:
    """Be the job."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO done (number) VALUES (%s)", [number])
