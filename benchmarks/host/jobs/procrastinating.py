"""procrastinate, on the same database."""

from procrastinate.contrib.django import app

from benchmarks.host.jobs.work import job


@app.task(name="benchmark.procrastinate")
def run(number: int) -> None:
    """Do the job."""
    job(number)


def send(number: int) -> None:
    """Promise the job in the transaction that is open."""
    run.defer(number=number)
