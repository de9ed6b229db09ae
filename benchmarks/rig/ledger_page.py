"""The page of `benchmarks.ledger`."""

from typing import Any

from benchmarks.rig import figures

_HEAD = (
    "rows", "bytes per row", "claim p50 ms, empty", "full", "claim p99 ms, empty", "full", "full ÷ empty, p50", "p99",
    "replay p99, full ÷ empty", "claim p99 while purging ÷ calm", "keys purged per second", "size after a day ÷ before",
)  # fmt: skip


def page(runs: dict[str, Any]) -> str:
    """Return the page that is kept in the repository."""
    rows = [
        _line(run) for _, run in sorted(runs.items(), key=lambda item: int(item[0])) if run["rows"]
    ]
    return (
        "# The ledger's size\n\n"
        "`python -m benchmarks.ledger --rows N --write` made each line: an empty ledger and one with so many rows"
        " take turns on one server with 64 MB of shared buffers, one client, every commit flushed.\n"
        "In brackets: the quartiles of resampled runs, so what two runs may differ by without a cause.\n"
        "A row is a settled key with its indexes; the newest tenth has its answer.\n"
        "The day is 24 times an hour's share of new keys and a purge of what is an hour older.\n\n"
        f"{figures.table(_HEAD, rows)}"
    )


def _line(run: dict[str, Any]) -> list[object]:
    return [
        f"{run['rows']:,}".replace(",", " "),
        f"{run['filled'] / run['rows']:.0f}",
        *(
            f"{run[which][at] * 1e3:.2f}"
            for at in ("p50", "p99")
            for which in ("claim_empty", "claim")
        ),
        f"{run['claim']['p50'] / run['claim_empty']['p50']:.2f}",
        _ratio(run["claim"], run["claim_empty"]),
        _ratio(run["replay"], run["replay_empty"]),
        _ratio(run["purging"], run["calm"]),
        f"{run['purged'] / run['purge_seconds']:.0f}",
        f"{run['day']['after'] / run['day']['before']:.3f}" if run["day"] else "not measured",
    ]


def _ratio(ours: dict[str, Any], base: dict[str, Any]) -> str:
    low, middle, high = ours["p99_spread"]
    least, usual, most = base["p99_spread"]
    return figures.told(low / most, middle / usual, high / least)
