"""Compile array programs into native libraries, with the number formats chosen by a policy.

    import numpy as np, jax.numpy as jnp, scalide, scalide.jax

    def loss(w, x):                                              # any JAX function
        return jnp.mean(jnp.tanh(x @ w))

    w, x = np.ones((8, 4), "f"), np.ones((2, 8), "f")
    program = scalide.jax.trace(loss, w, x)                      # print(program) shows its text
    library = scalide.build(program, numerics="f8_master")       # compiled kernels stay in a cache
    value = library(w, x)                                        # NumPy or JAX arrays in and out

`scalide.Library(path)` opens a library that is built already. This needs neither JAX nor a compiler.
`scalide.jax.call(library)` makes a library an operation of jitted functions.
`import scalide.jax as jsa` replaces `import jax_scalify as jsa`.

The folder `docs` next to this file has one page for each entry point:

trace.md         scalide.jax.trace: turn a JAX function into a program
program.md       scalide.Program: print, save, load, compare or differentiate a program
build.md         scalide.build: compile a program into a library
library.md       scalide.Library, scalide.empty: run a library on arrays
scaled_array.md  scalide.ScaledArray: low-precision data with one scale
saving.md        scalide.save, scalide.load: pytrees of arrays in safetensors files
checkpoints.md   scalide.Checkpoints: the checkpoints of a training run
metrics.md       scalide.Metrics: write the metrics of a run to JSON lines and to TensorBoard
ranks.md         scalide.join_mpi, scalide.join_alone: libraries in several processes
call.md          scalide.jax.call, scalide.jax.vjp: use a library in jitted functions
parallel.md      scalide.jax.parallel: functions with collectives, on several devices
amp.md           scalide.jax.amp: evaluate a JAX function in mixed precision
scalify.md       scalide.jax.scalify and its helpers: JAX functions on scaled arrays
primitives.md    scalide.jax.add_operator, scalide.jax.add_rule: support one more JAX primitive
tool.md          the command-line tool, scalide.tool_path
"""
from ._runtime import version as __version__
from .build import build
from .checkpoints import Checkpoints
from .comparison import Comparison, Kept, TensorError
from .library import Argument, Library, empty
from .metrics import Metrics
from .program import Program
from .ranks import Rank, join_alone, join_mpi
from .reports import Check, Decision, MatmulDecision, NonFinite, NonFiniteElement, NonFiniteError, Rounding, State, Statistic, Traced
from .tool_process import BuildError, tool_path
from .saving import load, save
from .scaled_array import ScaledArray
from . import flax_state

flax_state.register()

__all__ = ["Argument", "BuildError", "Check", "Checkpoints", "Comparison", "Decision", "Kept", "Library", "MatmulDecision", "Metrics", "NonFinite", "NonFiniteElement", "NonFiniteError", "Program", "Rank", "Rounding", "ScaledArray", "State", "Statistic", "TensorError", "Traced", "build", "empty", "join_alone", "join_mpi", "load", "save", "tool_path", "__version__"]
