"""Small trainings with statistics, and what one command says of them."""
import jax
import numpy as np

import scalide
from scalide.jax import trace


def draws(seed):
    """Returns a function that draws normal numbers in f32: numbers(3, 4, by=0.1)."""
    random = np.random.default_rng(seed)

    def numbers(*shape, by=1.0):
        return (by * random.standard_normal(shape)).astype(np.float32)

    numbers.random = random
    return numbers


def sgd(loss, rate):
    """Returns a step: (params, *batch) -> (new params, loss)."""

    def step(params, *batch):
        value, gradient = jax.value_and_grad(loss)(params, *batch)
        return jax.tree.map(lambda w, g: w - rate * g, params, gradient), value

    return step


def write_policy(folder, text, name="own"):
    path = folder / f"{name}.yaml"
    path.write_text(f"policy: {name}\ndoc: The rules of a user.\n{text}\n")
    return str(path)


class Training:
    """Trains in a folder, and writes metrics and statistics of each step."""

    def __init__(self, folder, step, first, batches, numerics="f32", before=None):
        """`first` is the tree of the first argument, which the step returns first. `before(number, tree)` may change it before a step."""
        self.folder, self.program = folder, trace(step, first, *batches[0], donate_argnums=0)
        self.library = scalide.build(self.program, numerics=numerics, statistics=1)
        self.last, self.state = self.library.convert(first), self.library.init() if self.library._state else None
        self.losses = []
        with scalide.Metrics(folder / "run", statistics=True) as metrics:
            for number, batch in enumerate(batches):
                self.last = before(number, self.last) if before else self.last
                if self.state is None:
                    self.last, value = self.library(self.last, *batch)
                else:
                    (self.last, value), self.state = self.library(self.last, *batch, self.state)
                self.losses.append(float(np.asarray(value)))
                metrics.write(number, {"loss": self.losses[-1]}, statistics=self.library)

    def report(self):
        """Returns the lines of `scalide report PROGRAM RUN`."""
        return self.program.report(self.folder / "run", output=self.folder / "page.html").splitlines()
