"""The table of failures as Markdown, for the documentation."""

from idempotency.resilience.table import TABLE, Evidence, Row
from idempotency.types import Outcome

_SAYS = {
    Evidence.NOT_SENT: "not sent",
    Evidence.NOT_EXECUTED: "not executed",
    Evidence.NOTHING: "perhaps executed, unless no byte left",
    Evidence.MAYBE_EXECUTED: "perhaps executed",
}


def render() -> str:
    """Return the table, a section per group and a line per row, in the order of the data."""
    return "\n".join(_section(title, rows) for title, rows in TABLE.items())


def _section(title: str, rows: tuple[Row, ...]) -> str:
    head = (
        f"### {title}",
        "",
        "| met | outcome | the request was | breaker | reason |",
        "|---|---|---|---|---|",
    )
    return "\n".join((*head, *(_line(row) for row in rows), ""))


def _line(row: Row) -> str:
    met = " ".join(f"`{sign}`" for sign in row.signs)
    condition = f" if declared, else {Outcome.AMBIGUOUS}" if row.if_declared else ""
    says = _SAYS[row.says] + ("; a known cause decides" if row.look_inside else "")
    return f"| {met} | {row.outcome}{condition} | {says} | {row.vote} | `{row.reason}` |"
