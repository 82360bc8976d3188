"""Array programs as native kernel libraries, in which every low-precision tensor can carry its own scale.

    import numpy as np, jax.numpy as jnp, scalide, scalide.jax

    def loss(w, x):                                        # any JAX function
        return jnp.mean(jnp.tanh(x @ w))

    w, x = np.ones((8, 4), "f"), np.ones((2, 8), "f")
    program = scalide.jax.trace(loss, w, x)                # its program: print(program)
    library = scalide.build(program)                       # compiled; kept in a cache
    value = library(w, x)                                  # NumPy and JAX arrays in and out

`scalide.Library(path)` runs a library that was built before; that needs neither JAX nor a compiler.
`scalide.jax.call(library)` makes it an operation of jitted functions.
`import scalide.jax as jsa` offers what jax_scalify does: `jsa.scalify(function)` runs it on `ScaledArray`s.
"""
import importlib

_HOMES = {"Library": "library", "Argument": "library", "empty": "library", "ScaledArray": "scaled_array", "Program": "program", "build": "build"}
__all__ = [*_HOMES, "jax"]


def __getattr__(name):
    # Names come when they are asked for: running a library must not import what tracing and building need.
    if name == "__version__":
        return importlib.import_module("scalide._runtime").version
    if name == "jax":
        return importlib.import_module("scalide.jax")
    if name not in _HOMES:
        raise AttributeError(f"module 'scalide' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"scalide.{_HOMES[name]}"), name)
    globals()[name] = value  # over the module of the same name
    return value


def __dir__():
    return sorted([*globals(), *__all__])
