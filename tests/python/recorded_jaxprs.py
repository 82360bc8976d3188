"""Jaxprs as text. The tests read what a version of JAX wrote that needs another Python than the one that runs the tests.

    python tests/python/recorded_jaxprs.py     # with that JAX: writes tests/python/jaxprs/<version>.json

A file has one line for each equation. `MODELS` names the functions; test_jax_recorded.py compares their results with JAX."""
import dataclasses
import enum
import json
import pathlib
import types

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src import source_info_util
from jax.extend.core import primitives as known_primitives

from scalide.jax import compat

FOLDER = pathlib.Path(__file__).parent / "jaxprs"


# The functions. Each is in no other test, and uses something that a later JAX writes in another way.


def draw(seed, *shape, scale=1.0):
    return np.asarray(np.random.default_rng(seed).normal(size=shape) * scale, np.float32)


def attention(p, x):
    """One pre-norm block with causal attention and two heads; the loss of next-token prediction."""
    h = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    q, k, v = jnp.split((h @ p["qkv"]).reshape(*x.shape[:2], 2, -1), 3, -1)
    scores = jnp.where(jnp.tril(jnp.ones((x.shape[1],) * 2, bool)), jnp.einsum("bqhd,bkhd->bhqk", q, k), -jnp.inf)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(x.shape) @ p["out"]
    return jnp.mean(-jax.nn.log_softmax(jax.nn.gelu(x @ p["up"]) @ p["down"])[..., 0])


def lstm(p, xs):
    def cell(carry, x):
        i, f, g, o = jnp.split(jnp.concatenate([carry[0], x]) @ p["w"] + p["b"], 4)
        c = jax.nn.sigmoid(f) * carry[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), c

    (h, _), cells = lax.scan(jax.checkpoint(cell), (jnp.zeros(6), jnp.zeros(6)), xs)
    return jnp.sum(h**2) + jnp.mean(cells)


def dropout(p, key, x):
    hidden = jnp.tanh(x @ p)
    keep = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.75, hidden.shape)
    return jnp.mean(jnp.where(keep, hidden / 0.75, 0.0) ** 2)


def convolution(p, x):
    h = jax.nn.relu(lax.conv_general_dilated(x, p["k"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jnp.log2(1 + jnp.sum(jnp.square(h.reshape(h.shape[0], -1) @ p["w"])))


def adam(p, state, x, y):
    loss, gradient = jax.value_and_grad(lambda p: jnp.mean(jnp.square(jnp.tanh(x @ p["w"] + p["b"]) - y)))(p)
    clip = jnp.minimum(1, 1 / jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(gradient))))
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * clip * g, state["m"], gradient)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * (clip * g) ** 2, state["v"], gradient)
    return jax.tree.map(lambda p, m, v: p - 0.1 * m / (jnp.sqrt(v) + 1e-8), p, first, second), {"m": first, "v": second}, loss


@jax.custom_vjp
def reversed_gradient(x):
    return x


reversed_gradient.defvjp(lambda x: (x, None), lambda _, g: (-g,))


def branches(x, table, ids):
    x = reversed_gradient(jnp.arctanh(0.5 * jnp.sin(x)) + jnp.arcsin(0.5 * jnp.cos(x)))
    x = lax.cond(jnp.sum(x) > 0, lambda x: lax.fori_loop(0, 3, lambda _, x: x * 0.5 + 1, x), lambda x: -x, x)
    return jnp.sum(x[:, None] * table[ids].at[0].add(1.0)) + lax.cumsum(x)[-1]


def indices(x, q):
    order = jnp.argsort(x)
    return jnp.searchsorted(x[order], q), jnp.frexp(x), jnp.ldexp(x, jnp.arange(x.size) - 3), lax.top_k(x, 3), lax.cumlogsumexp(x)


def keys(key):
    one, two = jax.random.split(jax.random.wrap_key_data(key))
    many = jax.vmap(lambda key: jax.random.uniform(jax.random.fold_in(key, 7), (3,)))(jax.random.split(one, 4))
    return many, jax.random.normal(two, (5,)), jax.random.permutation(two, 7), jax.random.randint(one, (4,), -3, 9)


def special(x):
    return {
        "log2": jnp.log2(jnp.abs(x) + 1), "polyval": jnp.polyval(jnp.asarray([0.5, -1.0, 2.0, 0.25], x.dtype), x), "tanh": jax.nn.tanh(x),
        "arccos": jnp.arccos(jnp.tanh(x)), "softplus": jax.nn.softplus(x), "erf": lax.erf(x), "erf_inv": lax.erf_inv(jnp.tanh(x)),
        "erfc": lax.erfc(x), "logistic": lax.logistic(x), "sinc": jnp.sinc(x), "selu": jax.nn.selu(x),
    }  # fmt: skip


def gradient_of_special(x):
    return jax.grad(lambda x: sum(map(jnp.sum, special(x).values())))(x)


KEY = np.asarray([0, 42], np.uint32)
MODELS = {
    "attention": (jax.value_and_grad(attention), {"qkv": draw(0, 8, 24, scale=0.3), "out": draw(1, 8, 8, scale=0.3), "up": draw(2, 8, 16, scale=0.3),
                                                  "down": draw(3, 16, 5, scale=0.3)}, draw(4, 2, 5, 8)),
    "lstm": (jax.value_and_grad(lstm), {"w": draw(5, 9, 24, scale=0.3), "b": draw(6, 24)}, draw(7, 4, 3)),
    "dropout": (jax.value_and_grad(dropout), draw(8, 7, 5), KEY, draw(9, 3, 7)),
    "convolution": (jax.value_and_grad(convolution), {"k": draw(10, 3, 3, 2, 4, scale=0.3), "w": draw(11, 36, 3, scale=0.2)}, draw(12, 2, 6, 7, 2)),
    "adam": (adam, {"w": draw(13, 6, 4), "b": draw(14, 4)}, {"m": {"w": draw(15, 6, 4), "b": draw(16, 4)},
             "v": {"w": draw(17, 6, 4) ** 2, "b": draw(18, 4) ** 2}}, draw(19, 5, 6), draw(20, 5, 4)),
    "branches": (jax.value_and_grad(branches), draw(21, 5), draw(22, 9, 5)[:, :3], np.int32([1, 8, 0, 8, 2])),
    "indices": (indices, draw(23, 9), draw(24, 4)),
    "keys": (keys, KEY),
    "special": (special, draw(25, 33)),
    "gradient_of_special": (gradient_of_special, draw(26, 33)),
    "bf16": (lambda x, w: jax.grad(lambda w: jnp.sum(jnp.tanh(jnp.dot(x, w, preferred_element_type=jnp.float32))))(w), jnp.asarray(draw(27, 4, 6), "bfloat16"),
             jnp.asarray(draw(28, 6, 3), "bfloat16")),
}  # fmt: skip


# Writing.


class _Recorder:
    """Writes a jaxpr as plain lists and dictionaries. Variables are numbers."""

    def __init__(self):
        self.numbers: dict = {}

    def jaxpr(self, jaxpr) -> dict:
        jaxpr, constants = compat.open_jaxpr(jaxpr)
        return {
            "constants": [[self.variable(v), self.param(np.asarray(array))] for v, array in zip(jaxpr.constvars, constants)],
            "arguments": [self.variable(v) for v in jaxpr.invars],
            "equations": [self.equation(eqn) for eqn in jaxpr.eqns],
            "results": [self.atom(v) for v in jaxpr.outvars],
        }

    def variable(self, variable) -> list:
        number = self.numbers.setdefault(id(variable), (len(self.numbers), variable))[0]
        return [number, str(variable.aval.dtype), list(variable.aval.shape)]

    def atom(self, atom):
        if isinstance(atom, compat.Literal):
            return {"literal": self.param(np.asarray(atom.val, atom.aval.dtype))}
        return self.numbers[id(atom)][0]

    def equation(self, eqn) -> dict:
        name, params = eqn.primitive.name, eqn.params
        if any(dataclasses.is_dataclass(value) or name == "call_hi_primitive" for value in params.values()) and hasattr(eqn.primitive, "to_lojax"):
            name, params = "closed_call", {"call_jaxpr": compat.decomposition_of(eqn)}  # parameters that are objects of this JAX
        stack = eqn.source_info.name_stack.stack
        scopes = [entry.name for entry in stack if isinstance(entry, source_info_util.Scope)]
        is_transposed = any(isinstance(entry, source_info_util.Transform) and entry.name == "transpose" for entry in stack)
        made = {"primitive": name, "operands": [self.atom(v) for v in eqn.invars], "results": [self.variable(v) for v in eqn.outvars]}
        made |= {"scopes": scopes} if scopes else {}
        made |= {"transposed": True} if is_transposed else {}
        made |= {"multiple": True} if eqn.primitive.multiple_results else {}
        kept = {compat.CALLS[name]} if name in compat.CALLS else params.keys() - compat.SILENT
        shown = {key: self.param(params[key]) for key in sorted(kept)}
        return made | ({"params": shown} if shown else {})

    def param(self, value):
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return {"float": repr(value)}
        if hasattr(value, "eqns"):
            return {"jaxpr": self.jaxpr(value)}
        if isinstance(value, np.dtype) or isinstance(value, type) and hasattr(value, "dtype"):
            return {"dtype": str(np.dtype(value))}
        if isinstance(value, (np.ndarray, np.generic)):
            return {"array": np.asarray(value).astype(np.float64 if value.dtype.kind not in "iub" else value.dtype).tolist(), "dtype": str(value.dtype)}
        if isinstance(value, enum.Enum):
            return {"enum": type(value).__name__, "name": value.name, "value": value.value}
        if hasattr(value, "_asdict") or dataclasses.is_dataclass(value):
            fields = value._asdict() if hasattr(value, "_asdict") else vars(value)
            return {"record": {key: self.param(each) for key, each in fields.items()}}
        if isinstance(value, (tuple, list)):
            return [self.param(each) for each in value]
        if hasattr(value, "unpack"):
            return {"groups": [len(each) for each in value.unpack()]}
        if hasattr(value, "multiple_results"):
            return {"primitive": value.name}
        return {"object": type(value).__name__}


def write(name: str) -> dict:
    """Returns the jaxpr of a model as plain lists and dictionaries."""
    fn, *args = MODELS[name]
    return _Recorder().jaxpr(jax.jit(fn).trace(*args).jaxpr)


def save(path: pathlib.Path) -> None:
    """Writes all models, an equation a line."""

    def text(value, indent="") -> str:
        if isinstance(value, dict) and "equations" in value:
            parts = [f'{indent} "{key}": {text(each, indent + " ") if key != "equations" else equations(each, indent + "  ")}' for key, each in value.items()]
            return "{\n" + ",\n".join(parts) + "}"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{json.dumps(key)}: {text(each, indent)}" for key, each in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(text(each, indent) for each in value) + "]"
        return json.dumps(value)

    def equations(value, indent) -> str:
        return "[" + ",".join(f"\n{indent}{text(each, indent)}" for each in value) + "]"

    path.write_text("{\n" + ",\n".join(f'"{name}": {text(write(name))}' for name in MODELS) + "\n}\n")


# Reading.


class _Record(types.SimpleNamespace):
    """A named tuple or dataclass of the other JAX."""

    def _asdict(self):
        return vars(self)


class _Variable:
    def __init__(self, aval):
        self.aval = aval


class _Groups:
    """The operands of a scan: constants, carried values, sequences."""

    def __init__(self, sizes):
        self.sizes = sizes

    def unpack(self):
        return [[None] * size for size in self.sizes]


class _Reader:
    """Makes objects that have what the tracer reads of a jaxpr."""

    PRIMITIVES = {each.name: each for each in vars(known_primitives).values() if hasattr(each, "multiple_results")}

    def __init__(self):
        self.variables: dict = {}

    def jaxpr(self, record: dict):
        constants = [(self.variable(v), self.param(array)) for v, array in record["constants"]]
        arguments = [self.variable(v) for v in record["arguments"]]
        equations = [self.equation(each) for each in record["equations"]]
        results = [self.atom(each) for each in record["results"]]
        made = types.SimpleNamespace(constvars=[v for v, _ in constants], consts=[array for _, array in constants], invars=arguments, eqns=equations,
                                     outvars=results, debug_info=None)  # fmt: skip
        made.jaxpr = made  # it is closed
        return made

    def aval(self, dtype: str, shape):
        if dtype.startswith("key<"):
            return jax.eval_shape(lambda: jax.random.split(jax.random.key(0), tuple(shape)))
        return jax.core.ShapedArray(tuple(shape), jnp.dtype(dtype))

    def variable(self, described: list):
        number, dtype, shape = described
        return self.variables.setdefault(number, _Variable(self.aval(dtype, shape)))

    def atom(self, described):
        if isinstance(described, int):
            return self.variables[described]
        value = self.param(described["literal"])
        return compat.Literal(value, jax.core.ShapedArray(value.shape, value.dtype))

    def equation(self, record: dict):
        stack = [source_info_util.Scope(name) for name in record.get("scopes", ())]
        stack += [source_info_util.Transform("transpose")] if record.get("transposed") else []
        primitive = self.PRIMITIVES.get(record["primitive"]) or types.SimpleNamespace(name=record["primitive"], multiple_results=record.get("multiple", False))
        return types.SimpleNamespace(
            primitive=primitive, invars=[self.atom(v) for v in record["operands"]], params={key: self.param(v) for key, v in record.get("params", {}).items()},
            outvars=[self.variable(v) for v in record["results"]],
            source_info=source_info_util.new_source_info().replace(name_stack=source_info_util.NameStack(tuple(stack))))  # fmt: skip

    def param(self, described):
        if isinstance(described, list):
            return tuple(self.param(each) for each in described)
        if not isinstance(described, dict):
            return described
        (kind, value), *_ = described.items()
        read = {
            "float": float, "jaxpr": self.jaxpr, "dtype": jnp.dtype, "groups": _Groups, "object": str,
            "array": lambda value: np.asarray(value).astype(jnp.dtype(described["dtype"])), "primitive": lambda name: types.SimpleNamespace(name=name),
            "enum": lambda _: getattr(lax, value)[described["name"]] if hasattr(lax, value) else described["value"],
            "record": lambda fields: _Record(**{key: self.param(each) for key, each in fields.items()}),
        }  # fmt: skip
        return read[kind](value)


def read(record: dict):
    """Returns the jaxpr that `write` wrote, with what the tracer reads of it."""
    return _Reader().jaxpr(record)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    save(FOLDER / f"{jax.__version__}.json")
