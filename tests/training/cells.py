"""The cells of the test matrix. A cell is one library and its runs, compared with JAX in f32."""
import os
from pathlib import Path
from typing import NamedTuple

import models

POLICIES = tuple(sorted(path.stem for path in (Path(os.environ["SCALIDE_RULES_DIR"]) / "policies").glob("*.yaml")))
#: Policies for inference and for calibration: nothing is trained in them.
INFERENCE = ("f8_weights", "f8_static", "f8_calibrate")
#: Policies whose scales come from earlier steps: the first step has the scale 1, so other scales of weights or losses give other digits.
DELAYED = ("f8_delayed",)
#: Policies in which the first run of a program is already exact to the format.
AT_ONCE = tuple(policy for policy in POLICIES if policy not in (*DELAYED, "f8_static", "f8_calibrate", "f8_current"))
#: Second names: the same rules as another policy.
ALIASES = ("f8_current",)
TRAINED = tuple(policy for policy in POLICIES if policy not in INFERENCE + ALIASES)
STEPS = 200
#: Of cells with one batch, where updates repeat.
FIXED_STEPS = 2000

#: Policies without scales in f16: weights and losses of other scales overflow or become zero.
UNSCALED = ("amp_f16",)

#: The largest difference of a loss from the f32 loss, by the smallest format in a policy's name.
TOLERANCES = {"f32": 0.001, "f8": 0.03, "mxfp8": 0.03, "f16": 0.01, "bf16": 0.01, "state8": 0.01}

#: Cells that the build refuses with a reason: name -> what the reason has in it.
REFUSED: dict[str, str] = {}

#: (of the stored weights, of the loss), each a power of two: f32 gives the same digits with all of them.
FACTORS = tuple((2.0**weight, 1.0) for weight in (-24, -13, 13, 24)) + tuple((1.0, 2.0**loss) for loss in (-24, -12, 12, 24))


class Cell(NamedTuple):
    """form: functional (parameters in, parameters out) or donated (overwritten). factors: runs with weights and losses of other scales too,
    which have to give the very losses. arrays: runs with JAX's arrays too, which have to give the very losses. fixed: all steps on one batch."""
    model: str
    depth: int
    optimizer: str
    policy: str
    form: str
    bias: float = 0.0
    factors: tuple = ()
    arrays: bool = False
    fixed: bool = False

    @property
    def name(self) -> str:
        kind = "factors" if self.factors else "biases" if self.bias else "fixed" if self.fixed else "losses"
        return f"{self.model}-{self.depth}-{self.optimizer}-{self.policy}-{self.form}-{kind}"


def tolerance(policy: str) -> float:
    return TOLERANCES[policy.removeprefix("amp_").split("_")[0]]


def floor(cell: Cell) -> float:
    """The part of the first loss below which a loss is not looked at in relation to itself. A batch that is learned by heart comes below
    any noise of products in f8, with master copies too: there the first loss measures what is left."""
    return 1.0 if cell.fixed and tolerance(cell.policy) == TOLERANCES["f8"] else 0.05


def cells() -> list[Cell]:
    """All cells: depths by SGD; optimizers, biases and factors at depth 4."""
    forms = ("functional", "donated")
    found = [Cell(model, depth, "sgd", policy, form, arrays=depth == 4)
             for model in models.NAMES for depth in models.DEPTHS for policy in TRAINED for form in forms]  # fmt: skip
    for model in models.NAMES:
        for policy in TRAINED:
            found += [Cell(model, 4, optimizer, policy, "donated") for optimizer in ("momentum", "adam", "adamw")]
            found.append(Cell(model, 4, "sgd", policy, "donated", bias=0.3))
            found += [Cell(model, 4, optimizer, policy, "donated", fixed=True) for optimizer in ("sgd", "adam")]
            if policy not in DELAYED + UNSCALED:
                found += [Cell(model, 4, "sgd", policy, "donated", factors=FACTORS), Cell(model, 4, "adam", policy, "functional", factors=FACTORS)]
    return found


def fast_cells() -> list[Cell]:
    """Those of every ./check: both forms and all optimizers on few layers. A policy that scales meets one of the four other models."""
    found = [Cell("mlp", 4, "sgd", policy, "functional", arrays=True) for policy in TRAINED]
    found += [Cell("mlp", 4, "adam", policy, "donated", factors=() if policy in DELAYED + UNSCALED else FACTORS[::2]) for policy in TRAINED]
    others = [Cell("transformer", 2, "adamw", "", "donated", bias=0.3),
              *(Cell(model, 2, "momentum", "", "donated") for model in ("residual", "convolutional", "lstm"))]  # fmt: skip
    scaled = [policy for policy in TRAINED if policy not in ("f32", "bf16")]
    return found + [others[i % 4]._replace(policy=policy) for i, policy in enumerate(scaled)]
