"""Metrics: the numbers of a training run as JSON lines and for TensorBoard. The native module writes the files."""
from __future__ import annotations

import operator
import os
import warnings
import weakref
from typing import Any, Mapping

from . import _runtime


class Metrics:
    """Writes the metrics of a training run to a folder: the file `metrics.jsonl`, with `statistics` the file `statistics.jsonl`, and with
    `tensorboard` an event file of TensorBoard.

    A thread writes the files, so that a step never waits for the disk. A line is `{"step": 12, "time": 1767225600.25, "loss": 0.5}`, where
    `time` is in seconds since 1970. Numbers read back as the same floats; NaN and infinities are the strings "nan", "inf" and "-inf".
    A file that exists is continued. If its last line is torn because a process was killed, the line is removed.

        with scalide.Metrics("runs/first", tensorboard=True) as metrics:
            for step in range(1000):
                state, loss = library(state, batch)
                metrics.write(step, {"loss": loss})

    Args:
        folder: The folder for the files. It is created if necessary. One process writes it at a time.
        tensorboard: Also write a file `events.out.tfevents.*` with scalars, and with histograms if there are statistics.
        queue_bytes: Memory for lines that are not yet in a file. If it is full, lines are dropped and counted. Default: 1 MiB, and 16 MiB
            for statistics.
        statistics: Also write statistics of tensors (Library.statistics).

    Raises:
        OSError: The folder or a file cannot be written, or other metrics are open in the folder.
        ValueError: queue_bytes is less than 256.
    """

    def __init__(self, folder: str | os.PathLike, tensorboard: bool = False, queue_bytes: int | None = None, statistics: bool = False):
        self.folder = os.fspath(folder)
        if queue_bytes is not None and queue_bytes < 256:
            raise ValueError(f"queue_bytes: must be at least 256, got {queue_bytes}. Leave it out for 1 MiB")
        self._native = _runtime.Metrics(self.folder, bool(tensorboard), queue_bytes or 0, bool(statistics))
        self._statistics, self._written = bool(statistics), {}
        self._finalizer = weakref.finalize(self, _close_forgotten, self._native, self.folder)

    def write(self, step: int, values: Mapping[str, Any], statistics: Any = None) -> None:
        """Queues one line with the numbers of a step.

        Args:
            step: The number of the step.
            values: Numbers by name: Python numbers, or arrays with one element. The value of an array of JAX is waited for.
            statistics: A Library. If its last call collected statistics, they are written, too.

        Raises:
            OSError: Lines could not be written since the last report, or the queue is full. The line of this call is queued unless the
                queue is full. Later calls try again.
            TypeError, ValueError: A value is no number, or a name is wrong.
        """
        if statistics is not None and not self._statistics:
            raise ValueError("these metrics have no file of statistics. Open them with Metrics(folder, statistics=True).")
        self._native.write(operator.index(step), [(_checked_name(name), _number(name, value)) for name, value in values.items()])
        if statistics is not None:
            self._write_statistics(operator.index(step), statistics)

    def _write_statistics(self, step: int, library) -> None:
        native = library._running()
        newest = native.statistics_step
        if newest != self._written.get(native, -1):
            self._written[native] = newest
            self._native.write_statistics(step, native)

    def flush(self) -> None:
        """Waits until all lines are on the disk. Raises OSError as `write` does."""
        self._native.flush()

    @property
    def dropped(self) -> int:
        """The number of lines that were dropped because the queue was full. A line counts for each file."""
        return self._native.dropped

    def close(self) -> None:
        """Writes what is queued and closes the files. Raises OSError if lines were lost. Closing twice does nothing."""
        if self._finalizer.detach() is not None:
            self._native.close()

    def __enter__(self) -> Metrics:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Metrics({self.folder!r}{'' if self._finalizer.alive else ', closed'})"


def _checked_name(name) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a name of a metric must be a text, got {name!r}. Use for example 'loss'")
    return name


def _number(name: str, value) -> float:
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: must be a number or an array with one element, got {type(value).__name__}. Reduce it first") from None


def _close_forgotten(native, folder: str) -> None:
    """Closes metrics that were not closed, at the latest at the end of the process."""
    try:
        native.close()
    except OSError as error:
        warnings.warn(f"the metrics in {folder} were not closed, and an error occurred: {error}", ResourceWarning, stacklevel=2)
