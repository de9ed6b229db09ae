"""The files in which processes leave their counters for each other, under PROMETHEUS_MULTIPROC_DIR.

One is empty, or cut off, while its process is just opening it, or where that was killed or had no disk then.
"""

import logging
import struct
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector

logger = logging.getLogger(__name__)


class AllProcesses(MultiProcessCollector):
    """Reads the counters of all processes; a file that cannot be read hides only itself, not every metric and alert."""

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of the files that can be read."""
        files = [str(file) for file in Path(self._path).glob("*.db")]
        try:
            return self._merged(files)
        except _UNREADABLE:
            return self._merged([file for file in files if self._is_readable(file)])

    def _merged(self, files: list[str]) -> list[Metric]:
        return list(self.merge(files))

    def _is_readable(self, file: str) -> bool:
        try:
            self._merged([file])
        except _UNREADABLE as error:
            logger.warning("The metrics in %s are left out: %s", file, error)
            return False
        return True


# A `ValueError` also where the text is no UTF-8 or no JSON.
_UNREADABLE = (struct.error, ValueError, FileNotFoundError)
