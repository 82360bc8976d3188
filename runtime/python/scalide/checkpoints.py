"""Checkpoints: the checkpoints of a training run in one folder. JAX is not needed."""
from __future__ import annotations

import operator
import os
from typing import Any, Mapping

import numpy as np

from . import _runtime, msgpack_files, saving
from .arrays import DTYPES

_FORMATS = {"safetensors": 0, "flax": 1}
_NAMES = {numpy: name for name, (numpy, _) in DTYPES.items() if numpy is not None}


class Checkpoints:
    """A folder with the checkpoints of a training run, by step. The rules are the rules of flax.training.checkpoints.

    A save that fails, or whose process ends, leaves all older checkpoints, and the new one is complete or missing. One process at a time saves.

    Args:
        folder: The folder. The first `save` makes it if the folder around it exists.
        keep: The number of newest checkpoints that `save` leaves.
        keep_every_n_steps: Also leave older checkpoints that are at least so many steps apart.
        prefix: The beginning of the names in the folder.
        format: "safetensors", or "flax" for the files of flax.training.checkpoints. The latter have no metadata.
        shard_bytes: The most bytes of arrays in one safetensors file. A larger checkpoint is a folder of files with the index of Hugging Face.

    Raises:
        ValueError: An option is wrong.
    """

    def __init__(self, folder: str | os.PathLike, *, keep: int = 1, keep_every_n_steps: int | None = None, prefix: str = "checkpoint_",
                 format: str = "safetensors", shard_bytes: int = 2_000_000_000):  # fmt: skip
        for name, number in (("keep", keep), ("keep_every_n_steps", keep_every_n_steps), ("shard_bytes", shard_bytes)):
            if number is not None and operator.index(number) < 1:
                raise ValueError(f"Checkpoints: {name} must be at least 1, got {number}.")
        if format not in _FORMATS:
            raise ValueError(f"Checkpoints: format must be one of {', '.join(_FORMATS)}, got {format!r}.")
        self.folder, self.prefix, self.keep, self.keep_every_n_steps = os.fspath(folder), prefix, keep, keep_every_n_steps
        self.format, self.shard_bytes = format, shard_bytes

    def save(self, step: int, tree: Any, *, overwrite: bool = False, library: Any = None, metadata: Mapping[str, str] | None = None) -> None:
        """Saves a pytree, as `scalide.save` does, and removes older checkpoints.

        Args:
            step: A number from 0 on, larger than the latest one.
            tree: The pytree: parameters, the states of optimizer and policy, `jax.random.key_data(key)`, and so on.
            overwrite: True: `step` may be old. All later checkpoints are removed.
            library: The Library of the step. Its policy and its hash become a part of the metadata.
            metadata: More entries of the metadata.

        Raises:
            TypeError, ValueError: As `scalide.save`; or the step is not larger than the latest one.
            OSError: The folder cannot be written, or another process saves into it.
        """
        step, every = operator.index(step), self.keep_every_n_steps or 0
        if self.format == "flax":
            rows = msgpack_files.rows_of(tree)
            return _runtime.save_flax_checkpoint(self.folder, step, rows, msgpack_files.SEPARATOR, self.prefix, self.keep, every, overwrite)
        texts = dict(metadata or {})
        if library is not None:
            texts |= {"scalide.policy": library.numerics, "scalide.program": library.hash}
        content, structure = saving.content_of(tree)
        rows = [_row(name, np.asarray(array)) for name, array in content.items()]
        _runtime.save_checkpoint(self.folder, step, rows, texts | structure, self.prefix, self.keep, every, overwrite, 0, self.shard_bytes)

    def latest(self) -> int | None:
        """Returns the largest step, or None if there is no checkpoint.

        Raises:
            OSError: The folder cannot be read.
        """
        return max(self.steps(), default=None)

    def steps(self) -> list[int]:
        """Returns the steps of all checkpoints, in ascending order.

        Raises:
            OSError: The folder cannot be read.
        """
        return _runtime.checkpoint_steps(self.folder, self.prefix)

    def restore(self, step: int | None = None, like: Any = None, *, library: Any = None) -> Any:
        """Returns the pytree of a checkpoint, bit for bit.

        Args:
            step: The step. Default: the latest one.
            like: A pytree of arrays. The result has its structure; names, dtypes and shapes must agree.
            library: A Library. It is an error if the checkpoint is for another policy.

        Raises:
            OSError: There is no such checkpoint, or it cannot be read.
            ValueError: The arrays differ from `like`: the message names all differences. Or the policy is another one.
        """
        file, found = _runtime.checkpoint_path(self.folder, step, self.prefix)
        if os.path.isfile(file) and not file.endswith(".safetensors"):
            return msgpack_files.read(file, like)
        _, rows, metadata = _runtime.read_checkpoint(self.folder, found, self.prefix)
        content = {name: data.view(DTYPES[dtype][0]).reshape(shape) for name, dtype, shape, data in rows}
        path = f"{self.folder}, step {found}"
        policy = metadata.get("scalide.policy")
        if library is not None and policy not in (None, library.numerics):
            raise ValueError(f"{path}: the checkpoint is for policy {policy}, and the library has policy {library.numerics}. "
                             "Convert the file with 'scalide convert'.")  # fmt: skip
        if like is not None:
            differences = saving.differences(content, like)
            if differences:
                raise ValueError(f"{path}: the file must have the arrays of 'like'. {differences} Convert the file with 'scalide convert', "
                                 "or choose the checkpoint of another program.")  # fmt: skip
        return saving.tree_of(content, metadata, path, like)

    def metadata(self, step: int | None = None) -> dict[str, str]:
        """Returns the metadata of a checkpoint: `scalide.step`, `scalide.policy`, `scalide.program`, and the entries of the caller.

        Raises:
            OSError: There is no such checkpoint, or it cannot be read.
        """
        return _runtime.read_checkpoint(self.folder, step, self.prefix)[2]


def _row(name, array):
    return name, _NAMES[array.dtype], array.shape, np.ascontiguousarray(array).reshape(-1).view(np.uint8)
