"""Libraries on arrays that are sharded along a batch axis: each device runs its part (`batch` of `scalide.jax.call`)."""
from __future__ import annotations

import inspect
import re
import warnings
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec


class Batch:
    """The position of the batch axis in each array of a library.

    Args:
        library: A library with a program. The symbols in the shapes give the axes.
        symbol: The symbol of the batch axis.
        sums: True: a result without this axis is the sum over the devices, as for gradients.

    Raises:
        ValueError: A result does not have the axis, is scaled, or the library has no program.
    """

    def __init__(self, library, symbol: str, sums: bool = False):
        self.name, self.symbol, self.sums = library.name, symbol, sums
        if library.program is None:
            raise ValueError(f"{library.name}: 'batch' needs the program of the library. Load it with Library(path, program).")
        inputs, outputs = library.program.inputs, library.program.outputs
        by_name = {spec.name: spec for spec in (*outputs, *inputs)}
        self.axes = [axis for argument in library._inputs for axis in self._axes_of(by_name[argument.name])]
        self.result_axes = [axis for argument in library._written for axis in self._axes_of(by_name[argument.name])]
        if all(axis is None for axis in self.axes):
            symbols = sorted({word for spec in inputs for extent in spec.shape for word in re.findall(r"[A-Za-z_]\w*", str(extent))})
            raise ValueError(f"{library.name}: batch must be an extent of an argument, got {symbol!r}. The symbols are: {', '.join(symbols) or 'none'}.")
        for spec in outputs:
            whole = self._axes_of(spec)[0] is None
            if whole and not sums:
                raise ValueError(f"{library.name}.{spec.name}: results must have the axis {symbol} when batch={symbol!r}, got {spec}. Compute results of "
                                 "the whole batch outside of the library.")  # fmt: skip
            if spec.scaled:
                raise ValueError(f"{library.name}.{spec.name}: results cannot be scaled when batch={symbol!r}, because a scale belongs to the whole array. Return "
                                 "it in f32, or in f16 without a scale.")  # fmt: skip

    def _axes_of(self, spec) -> list:
        """Returns the number of the axis (None: no such axis) for the data, and for the scale of a scaled array."""
        for extent in spec.shape:
            if str(extent) != self.symbol and re.search(rf"\b{re.escape(self.symbol)}\b", str(extent)):
                raise ValueError(f"{self.name}.{spec.name}: extents must be {self.symbol} or not contain it when batch={self.symbol!r}, got {spec}.")
        found = [axis for axis, extent in enumerate(spec.shape) if str(extent) == self.symbol]
        return [found[0] if found else None, *([None] if spec.scaled else [])]

    def divided(self, run: Callable) -> Callable:
        """Turns a function for arrays of any batch size into a function for sharded arrays."""
        operation = custom_partitioning(lambda *operands: tuple(run(*operands)))
        words = {"infer_sharding_from_operands": self._infer}
        if "sharding_rule" in inspect.signature(operation.def_partition).parameters:
            words |= self._rule()
        operation.def_partition(partition=lambda mesh, operands, results: self._partition(run, mesh, operands, results), **words)
        jitted = jax.jit(operation)  # arrays outside of jit are partitioned, too
        return jax.custom_batching.sequential_vmap(jitted) if hasattr(jax, "ffi") else jitted

    def _rule(self) -> dict:
        """Returns the sharding rule for Shardy: the batch axis is one factor; the factor of each other axis must not be divided."""
        others: list[str] = []

        def factors(axis, rank):
            names = []
            for place in range(rank):
                others.extend([f"o{len(others)}"] if place != axis else [])
                names.append("b" if place == axis else others[-1])
            return " ".join(names)

        def rule(mesh, operand_types, result_types):
            others.clear()
            sides = [", ".join(factors(axis, len(type_.shape)) for axis, type_ in zip(axes, types))
                     for axes, types in ((self.axes, operand_types), (self.result_axes, result_types))]  # fmt: skip
            return " -> ".join(sides), {"need_replication_factors": tuple(others)}

        return {"sharding_rule": rule}

    def _shardings(self, mesh, axes, shapes, over) -> tuple:
        return tuple(NamedSharding(mesh, PartitionSpec(*(over if place == axis else None for place in range(len(shape.shape)))))
                     for axis, shape in zip(axes, shapes))  # fmt: skip

    def _over(self, operands):
        """Returns the axes of the mesh that divide the batch of an operand, or None."""
        for axis, operand in zip(self.axes, operands):
            spec = getattr(operand.sharding, "spec", None)
            if axis is not None and spec is not None and axis < len(spec) and spec[axis]:
                return spec[axis]
        return None

    def _infer(self, mesh, operands, results) -> tuple:
        return self._shardings(mesh, self.result_axes, results, self._over(operands))

    def _partition(self, run, mesh, operands, results):
        if mesh.empty or any(not isinstance(operand.sharding, NamedSharding) for operand in operands):
            warnings.warn(f"{self.name}: batch={self.symbol!r} has no effect on arrays that are not sharded over a mesh, so they are gathered. Use "
                          "jax.sharding.NamedSharding.", stacklevel=2)  # fmt: skip
            mesh = jax.sharding.Mesh(np.asarray(operands[0].sharding._device_assignment), ("all",))
            over = None
        else:
            over = self._over(operands)

        def of_part(*parts):
            made = run(*parts)
            if not self.sums or over is None:
                return tuple(made)
            return tuple(part if axis is not None else _sum(part, over) for axis, part in zip(self.result_axes, made))

        return mesh, of_part, self._shardings(mesh, self.result_axes, results, over), self._shardings(mesh, self.axes, operands, over)


def _sum(part, over):
    """Returns the sum over all devices, computed in f32 or wider."""
    if not jnp.issubdtype(part.dtype, jnp.floating):
        return jax.lax.psum(part, over)
    return jax.lax.psum(part.astype(jnp.promote_types(part.dtype, jnp.float32)), over).astype(part.dtype)
