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

Each has a page with arguments, an example and errors, in the folder `docs` beside this file:

trace.md         scalide.jax.trace: a JAX function becomes a program
program.md       scalide.Program: print, save, load, grad, scalify, numerics
build.md         scalide.build: a program becomes a library
library.md       scalide.Library, scalide.empty: a library runs on arrays, and in place
scaled_array.md  scalide.ScaledArray: data and one scale
saving.md        scalide.save, scalide.load: trees of arrays in safetensors files, for C++ too
call.md          scalide.jax.call, scalide.jax.vjp: a library in jitted functions
scalify.md       scalide.jax as jsa: scaled arrays end to end, in place of jax_scalify
primitives.md    scalide.jax.add_operator, add_rule: a primitive of your own
tool.md          the command `scalide`, also python -m scalide
"""
from ._runtime import version as __version__
from .build import BuildError, build, tool_path
from .library import Argument, Library, empty
from .program import Program
from .reports import Check, Decision, NonFinite, Rounding, State
from .saving import load, save
from .scaled_array import ScaledArray
from . import flax_state

flax_state.register()

__all__ = ["Argument", "BuildError", "Check", "Decision", "Library", "NonFinite", "Program", "Rounding", "ScaledArray", "State", "__version__", "build", "empty", "load", "save", "tool_path"]
