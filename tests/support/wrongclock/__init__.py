"""A host whose clock is wrong, for processes of tests."""

from pathlib import Path


def off(seconds: float) -> dict[str, str]:
    """Return the environment of a process whose clock is so many seconds ahead."""
    return {"PYTHONPATH": str(Path(__file__).parent), "CLOCK_IS_OFF": str(seconds)}
