"""The works in Scalide: the functions of jax_functions.py, traced, built, and run on arrays of their own."""
import jax
import jax_functions
import ml_dtypes
import numpy as np
import scalide
import scalide.jax
from works import inputs

TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i32": np.int32, "f8": ml_dtypes.float8_e4m3fn}
settings = {"threads": 0}


def version(threads):
    settings["threads"] = threads
    return f"Scalide {scalide.__version__}"


def variants(work):
    yield "library", library


def aligned(numbers, dtype):
    made = scalide.empty(numbers.shape, dtype)
    made[...] = numbers
    return made


def library(work):
    function = getattr(jax_functions, work.function)
    arrays = [aligned(numbers, TYPES[array.dtype]) for array, numbers in zip(work.arrays, inputs(work))]
    program = scalide.jax.trace(function, *arrays, name="work", donate_argnums=tuple(range(work.donated)), constant_argnums=tuple(range(work.constant)))
    built = scalide.build(program)
    run = scalide.Library(built.path, program, threads=settings["threads"])
    run.built = built  # its folder has the file
    if work.constant:
        run = run.prepare(*arrays[:work.constant])
    shapes = jax.tree.leaves(jax.eval_shape(function, *arrays))
    roles = {argument.name: argument.role for argument in run.arguments}
    named = dict(zip([argument.name for argument in run.arguments if argument.role != "output"], arrays))
    results = [named[name] if roles[name] == "inout" else scalide.empty(shape.shape, shape.dtype) for name, shape in zip(run.results, shapes)]
    written = {name: result for name, result in zip(run.results, results) if roles[name] == "output"}
    given = arrays[work.constant:]
    moved = sum(array.nbytes for array in arrays) + sum(array.nbytes for array in results)
    return lambda: run.out(*given, **written), lambda: [np.asarray(array, np.float32) for array in results], moved
