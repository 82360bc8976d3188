"""Automatic mixed precision for JAX functions, with the calls of jaxamp: `amp` evaluates a function in low precision, operation by operation."""
from __future__ import annotations

import functools
from typing import Any, Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from ..words import meant
from . import compat

#: A precision function: (compute_dtype, original_dtypes, *operands, **params) -> (operands, params).
Precision = Callable[..., tuple]

_WIDEST_FIRST = tuple(map(np.dtype, (np.float64, np.float32, jnp.bfloat16, np.float16)))


def use_original_precision(compute_dtype, original_dtypes: Sequence, *operands, **params) -> tuple:
    """Computes an operation in the dtypes of the function without amp."""
    return [_cast(operand, dtype) for operand, dtype in zip(operands, original_dtypes)], params


def use_compute_precision(compute_dtype, original_dtypes: Sequence, *operands, **params) -> tuple:
    """Computes an operation in `compute_dtype`. Arrays in its parameters are cast, too, and `preferred_element_type` becomes `compute_dtype`."""
    params = {name: tree_util.tree_map(lambda leaf: _cast(leaf, compute_dtype), value) for name, value in params.items()}
    if "preferred_element_type" in params:
        params["preferred_element_type"] = np.dtype(compute_dtype)
    return [_cast(operand, compute_dtype) for operand in operands], params


def _use_widest_precision(compute_dtype, original_dtypes: Sequence, *operands, **params) -> tuple:
    """Computes an operation in the widest dtype of its operands in the function without amp: f64, then f32, then bf16, then f16."""
    dtype = next((dtype for dtype in _WIDEST_FIRST if dtype in original_dtypes), None)
    if dtype is None:
        return use_original_precision(compute_dtype, original_dtypes, *operands, **params)
    return use_compute_precision(dtype, original_dtypes, *operands, **params)


def _use_precision(dtype) -> Precision:
    """Returns a precision function that computes an operation in one dtype."""

    def precision(compute_dtype, original_dtypes, *operands, **params):
        return use_compute_precision(dtype, original_dtypes, *operands, **params)

    return precision


_WORDS: dict[str, Precision] = {"original": use_original_precision, "compute": use_compute_precision, "widest": _use_widest_precision}

_LOW = (lax.add_p, lax.sub_p, lax.dot_general_p, lax.conv_general_dilated_p)
_HIGH = (lax.exp_p, lax.log_p, lax.mul_p, lax.div_p)

#: The policy of `amp` by default: sums, matmuls and convolutions in `compute_dtype`; exponentials, logarithms, products and quotients in f32;
#: everything else, and the scope "amp_stop", in the dtypes of the function.
default_amp_policy: dict[Any, Precision] = {
    **dict.fromkeys(_LOW, use_compute_precision),
    **dict.fromkeys(_HIGH, _use_precision(np.dtype(np.float32))),
    "amp_stop": use_original_precision,
    "amp_default": use_original_precision,
}


def amp_stop(fn: Callable | None = None):
    """Keeps operations in the dtypes of the function: `with amp_stop(): ...`, or `@amp_stop` on a function.

    It is the named scope "amp_stop". The default policy of `amp` has a row for it, and an outer scope in the policy wins.
    """
    scope = jax.named_scope("amp_stop")
    return scope if fn is None else scope(fn)


def amp(fn: Callable | None = None, compute_dtype=jnp.float16, amp_policy: Mapping = default_amp_policy, *, recurse: bool = True) -> Callable[..., Any]:
    """Returns fn in mixed precision: each operation is computed in the dtype that a policy gives it.

    The result is a function that JAX can jit, differentiate and vmap, and that `scalide.jax.trace` can trace. Its results have the dtypes of the
    results of fn, and the gradient for an f32 argument is f32. Arguments that are not arrays are static.

    The first row of the policy that fits decides: the named scopes around an operation from the outermost to the innermost, then its primitive,
    then "amp_default". Without a row, the operation keeps its dtypes. Values stay in low precision until an operation needs another dtype.

    The bodies of `jit`, `jax.checkpoint`, `lax.scan`, `lax.while_loop` and `lax.cond` are evaluated in mixed precision, too. A `jit` is inlined.
    What goes into and out of the body of a loop or a branch, such as the carry, keeps its dtype. Other bodies are computed in the dtypes of fn.
    These are functions with derivative rules of their own (`custom_jvp`, `custom_vjp`, such as `jax.nn.relu`), because these rules must stay;
    solvers, and reductions by a function.

    Args:
        fn: A function that JAX can trace. Without it, amp(...) is a decorator.
        compute_dtype: The dtype of low precision.
        amp_policy: Maps names of scopes, primitives and "amp_default" to a word ("original", "compute" or "widest"), a dtype, or a function
            (compute_dtype, original_dtypes, *operands, **params) -> (operands, params). A row for a primitive with a body gets the whole call.
        recurse: False: all bodies are computed in the dtypes of fn, as in jaxamp.

    Raises:
        ValueError: compute_dtype or a row of the policy is wrong.
    """
    if fn is None:
        return functools.partial(amp, compute_dtype=compute_dtype, amp_policy=amp_policy, recurse=recurse)
    evaluator = _Evaluator(_float_dtype(compute_dtype, "compute_dtype"), {key: _precision(key, row) for key, row in amp_policy.items()}, recurse)

    @functools.wraps(fn, updated=())
    def mixed(*args, **kwargs):
        leaves, structure = tree_util.tree_flatten((args, kwargs))
        arrays = [leaf for leaf in leaves if _is_array(leaf)]
        results = []

        def of_arrays(*arrays):
            given = iter(arrays)
            args, kwargs = tree_util.tree_unflatten(structure, [next(given) if _is_array(leaf) else leaf for leaf in leaves])
            results[:] = tree_util.tree_flatten(fn(*args, **kwargs))
            return [leaf for leaf in results[0] if _is_array(leaf)]

        closed = jax.make_jaxpr(of_arrays)(*arrays)
        made = iter(evaluator.restored(closed, arrays, ()))
        return tree_util.tree_unflatten(results[1], [next(made) if _is_array(leaf) else leaf for leaf in results[0]])

    return mixed


def _is_array(leaf) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic))


def _cast(value, dtype):
    """Returns an array of floats in another dtype, and any other value unchanged."""
    if not _is_array(value) or value.dtype == dtype or not jnp.issubdtype(value.dtype, jnp.floating) or not jnp.issubdtype(dtype, jnp.floating):
        return value
    return lax.convert_element_type(value, dtype)


def _float_dtype(dtype, what: str) -> np.dtype:
    try:
        found = jnp.dtype(dtype)
    except TypeError:
        found = None
    if found is None or not jnp.issubdtype(found, jnp.floating):
        raise ValueError(f"{what}: must be a float dtype, got {dtype!r}. Use jnp.float16, jnp.bfloat16 or jnp.float32")
    return found


def _precision(key, row) -> Precision:
    """Returns the precision function of a row of a policy."""
    if isinstance(row, str) and row in _WORDS:
        return _WORDS[row]
    if callable(row) and not isinstance(row, type) and not hasattr(row, "dtype"):
        return row
    try:
        return _use_precision(_float_dtype(row, f"amp_policy[{str(key)!r}]"))
    except ValueError:
        hint = meant(row, _WORDS) if isinstance(row, str) else "Use one of the words"
        raise ValueError(f"amp_policy[{str(key)!r}]: must be 'original', 'compute', 'widest', a float dtype or a function, got {row!r}. {hint}") from None


class _Evaluator:
    """Evaluates jaxprs with the casts of a policy."""

    def __init__(self, compute_dtype: np.dtype, policy: dict[Any, Precision], recurse: bool):
        self.compute_dtype, self.policy, self.recurse = compute_dtype, policy, recurse

    def restored(self, closed, arguments: Sequence, scopes: Sequence[str]) -> list:
        """Returns the results of a closed jaxpr in its own dtypes. `scopes` are the named scopes around it that JAX does not know here."""
        jaxpr, constants = compat.open_jaxpr(closed)
        results = self.run(jaxpr, constants, arguments, scopes)
        return [_cast(result, atom.aval.dtype) for result, atom in zip(results, jaxpr.outvars)]

    def run(self, jaxpr, constants: Sequence, arguments: Sequence, scopes: Sequence[str], keeps_line: bool = False) -> list:
        """Returns the results of a jaxpr. A float of the function may be in another float dtype here: operations cast what they read.
        `keeps_line`: the equations get the source line of the equation that calls the jaxpr."""
        values = dict(zip(jaxpr.constvars, constants)) | dict(zip(jaxpr.invars, arguments))

        def read(atom):
            return np.asarray(atom.val, atom.aval.dtype) if isinstance(atom, compat.Literal) else values[atom]

        for eqn in jaxpr.eqns:
            with compat.context_of(eqn, keeps_line) as names:
                results = self._equation(eqn, list(map(read, eqn.invars)), [*scopes, *names])
            values.update(zip(eqn.outvars, results))
        return list(map(read, jaxpr.outvars))

    def _equation(self, eqn, operands: list, scopes: list[str]) -> list:
        """Returns the results of one equation inside of named scopes."""
        name, has_body = eqn.primitive.name, bool(compat.bodies_of(eqn))
        if has_body and eqn.primitive not in self.policy:
            enter = getattr(self, _ENTERED.get(name, ""), None) if self.recurse else None
            if enter is not None:
                return enter(eqn, operands, scopes)
            precision = use_original_precision
        else:
            precision = next((self.policy[key] for key in (*scopes, eqn.primitive, "amp_default") if key in self.policy), use_original_precision)
        operands, params = precision(self.compute_dtype, [atom.aval.dtype for atom in eqn.invars], *operands, **eqn.params)
        return compat.bind(eqn.primitive, operands, params)

    def _call(self, eqn, operands: list, scopes: list[str]) -> list:
        jaxpr, constants = compat.open_jaxpr(eqn.params[compat.CALLS[eqn.primitive.name]])
        return self.run(jaxpr, constants, operands, scopes, keeps_line=not compat.is_of_user(jaxpr))

    def _checkpoint(self, eqn, operands: list, scopes: list[str]) -> list:
        options = {name: eqn.params[name] for name in ("policy", "prevent_cse")}
        return jax.checkpoint(lambda *operands: self._call(eqn, list(operands), scopes), **options)(*operands)

    def _scan(self, eqn, operands: list, scopes: list[str]) -> list:
        params = eqn.params
        shared, carried = compat.scan_counts(params)
        carry = _original(operands, eqn)[shared : shared + carried]

        def body(carry, elements):
            results = self.restored(params["jaxpr"], [*operands[:shared], *carry, *elements], scopes)
            return results[:carried], results[carried:]

        carry, stacked = lax.scan(body, carry, operands[shared + carried :], params["length"], params["reverse"], params["unroll"])
        return [*carry, *stacked]

    def _while(self, eqn, operands: list, scopes: list[str]) -> list:
        params = eqn.params
        ends = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        of_condition, of_body = operands[: ends[0]], operands[ends[0] : ends[1]]
        return lax.while_loop(lambda carry: self.restored(params["cond_jaxpr"], [*of_condition, *carry], scopes)[0],
                              lambda carry: self.restored(params["body_jaxpr"], [*of_body, *carry], scopes), _original(operands, eqn)[ends[1] :])  # fmt: skip

    def _cond(self, eqn, operands: list, scopes: list[str]) -> list:
        branches = [lambda *operands, branch=branch: self.restored(branch, operands, scopes) for branch in eqn.params["branches"]]
        return lax.switch(operands[0], branches, *operands[1:])


#: How a primitive with a body is evaluated in mixed precision.
_ENTERED = {**dict.fromkeys(("jit", "pjit", "closed_call", "core_call"), "_call"), **dict.fromkeys(("checkpoint", "remat", "remat2"), "_checkpoint"),
            "scan": "_scan", "while": "_while", "cond": "_cond"}  # fmt: skip


def _original(operands: list, eqn) -> list:
    """Returns operands in the dtypes of the function."""
    return [_cast(operand, atom.aval.dtype) for operand, atom in zip(operands, eqn.invars)]
