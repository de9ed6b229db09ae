"""What it means that recurring tasks are late, told from the signs that are left: `heartbeat`, Note [Signs]."""

from collections.abc import Collection

PLACE = "silence"
"""Its section in the runbook."""


def silence(late: Collection[str]) -> str:
    """Return what does not run and what follows from it, or "" where nothing is late.

    Args:
        late: the names of the recurring tasks and signs that are late.
    """
    if "beat" in late:
        return f"Beat does not run, so no recurring task is begun. {_SO}"
    if "broker" in late:
        return f"Beat runs, and the broker takes none of its messages. {_SO}"
    if {"reconcile", "wake"} <= set(late):
        return f"No worker does the recurring tasks. {_SO}"
    return (
        f"Late: {', '.join(late)}. The others run; its own turns fail, or are not begun."
        if late
        else ""
    )


_SO = "What is unknown is not looked up, and what waits for its time waits on. Nothing is lost. Call an engineer."
