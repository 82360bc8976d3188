"""A program: what `scalide.jax.trace` returns, `scalide.build` compiles, and `.scl` files hold."""
from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from .tree import Tree

HEADER = "#: "


@dataclasses.dataclass(frozen=True)
class Spec:
    """An argument or a result of a program."""

    name: str
    dtype: str  #: "f32", "f8_e4m3fn", ...
    shape: tuple[int | str, ...]  #: symbolic extents are text, "2*b"
    scaled: bool = False  #: carries its own scale
    inout: bool = False  #: an argument that is overwritten, a result that overwrites the argument of its name

    def __str__(self):
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]" + " scaled" * self.scaled + " inout" * self.inout


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """An array program in text form, and how its arguments and results nest in Python. Never changes: methods return new ones.

        program = scalide.jax.trace(loss, params, images, labels)   # or Program.load("loss.scl")
        print(program)
        library = scalide.build(program)                            # library(params, images, labels)
    """

    text: str
    in_tree: Tree = None  #: of (args, kwargs); None: arguments one after the other
    out_tree: Tree = None
    constants: Mapping[str, Any] = dataclasses.field(default_factory=dict)  #: arrays that the function closed over, the last arguments
    policy: str = "f32"  #: the numerics that `build` uses: the name of a policy, or a YAML file
    retrace: Callable | None = None  #: traces the gradient of the same function (not saved)
    places: Sequence = ()  #: for each line of the text where it came from (not saved)

    def __post_init__(self):
        name, inputs, outputs = _signature(self.text)
        for field, value in (("name", name), ("inputs", inputs), ("outputs", outputs)):
            object.__setattr__(self, field, value)
        object.__setattr__(self, "arguments", tuple(spec.name for spec in inputs))
        object.__setattr__(self, "results", tuple(spec.name for spec in outputs))
        object.__setattr__(self, "_constant_leaves", list(self.constants.values()))
        object.__setattr__(self, "_key_places", [i for i, spec in enumerate(inputs) if spec.dtype == "u32" and spec.shape[-1:] == (2,)])

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"Program({self.name}: {len(self.inputs)} arguments, {len(self.outputs)} results, numerics {self.policy})"

    def flatten(self, args: tuple, kwargs: Mapping) -> list:
        """Arrays in the order of `arguments`. Throws TypeError when the arguments nest otherwise than those that were traced."""
        if self.in_tree is not None:
            try:
                leaves = self.in_tree.flatten((args, kwargs)) + self._constant_leaves
            except TypeError as error:  # paths are those in (args, kwargs)
                raise TypeError(f"{self.name}: " + re.sub(r"^\[([01])\]", lambda side: ("args", "kwargs")[int(side[1])], str(error))) from None
            for place in self._key_places:
                leaves[place] = _words_of(leaves[place])
            return leaves
        if kwargs or len(args) != len(self.inputs):
            raise TypeError(f"{self.name}: takes {len(self.inputs)} arrays: {', '.join(self.arguments)}")
        return list(args)

    def unflatten(self, leaves: Sequence) -> Any:
        """What the function returned, with these arrays in the order of `results`."""
        if self.out_tree is not None:
            return self.out_tree.unflatten(leaves)
        return leaves[0] if len(leaves) == 1 else tuple(leaves)

    def numerics(self, policy) -> Program:
        """The same program for another policy: "f32", "bf16", "f16_scaled", "f8_scaled", or the path of a YAML file."""
        return dataclasses.replace(self, policy=str(policy))

    def scalify(self) -> Program:
        """The same program with every float argument and result scaled: `ScaledArray`s go in and come out."""
        text = self.text
        at = text.rindex("\nprogram ") + 1 if "\nprogram " in text else 0
        head, body = text[:at], text[at:]
        end = body.index("{\n")
        signature = re.sub(r"(: b?f\d+(?:_\w+)?\[[^\]]*\])(?! scaled)", r"\1 scaled", body[:end])
        for name in self.constants:
            signature = re.sub(rf"({re.escape(name)}: \S+\[[^\]]*\]) scaled", r"\1", signature)
        return dataclasses.replace(self, text=head + signature + body[end:], retrace=None)

    def grad(self, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Program:
        """The program of `jax.grad(fn, argnums, has_aux)`, with JAX's own rules. Only for traced programs, not for loaded ones."""
        return self._retrace("grad", argnums, has_aux)

    def value_and_grad(self, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Program:
        """The program of `jax.value_and_grad(fn, argnums, has_aux)`."""
        return self._retrace("value_and_grad", argnums, has_aux)

    def _retrace(self, transformation: str, argnums, has_aux) -> Program:
        if self.retrace is None:
            raise ValueError(f"{self.name}: {transformation} must be asked of a traced program, got one that was loaded or scalified. "
                             "Trace the gradient: scalide.jax.trace(jax.grad(fn), ...), then save or scalify it")  # fmt: skip
        return dataclasses.replace(self.retrace(transformation, argnums, has_aux), policy=self.policy)

    def save(self, path) -> None:
        """Writes the text, with what Python needs in its first line; closed-over arrays to a safetensors file beside it."""
        trees = [tree if tree is None else getattr(tree, "node", NotImplemented) for tree in (self.in_tree, self.out_tree)]
        if NotImplemented in trees:
            raise ValueError(f"{self.name}: arguments and results must nest in dicts with names, lists, tuples and named tuples to be saved, "
                             "got containers of other classes. Trace a function that takes and returns dicts")  # fmt: skip
        header = {"policy": self.policy, "in": trees[0], "out": trees[1], "constants": list(self.constants)}
        Path(path).write_text(HEADER + json.dumps(header) + "\n" + self.text)
        if self.constants:
            from .arrays import write_safetensors

            write_safetensors(Path(path).with_suffix(".constants.safetensors"), self.constants)

    @classmethod
    def load(cls, path) -> Program:
        """A program from a file that `save` wrote, or any `.scl` file."""
        text, header = Path(path).read_text(), {}
        if text.startswith(HEADER):
            line, text = text.split("\n", 1)
            header = json.loads(line[len(HEADER) :])
        constants = {}
        if header.get("constants"):
            from .arrays import read_safetensors

            arrays = read_safetensors(Path(path).with_suffix(".constants.safetensors"))
            constants = {name: arrays[name] for name in header["constants"]}
        trees = [None if header.get(side) is None else Tree(header[side]) for side in ("in", "out")]
        return cls(text, *trees, constants, header.get("policy", "f32"))


def _words_of(array):
    """The two words of a random key, jax.random.key(); other arrays as they are."""
    if not str(getattr(array, "dtype", "")).startswith("key<"):
        return array
    import jax

    return jax.random.key_data(array)


_PARTS = re.compile(r"\s*([\w.$]+)\s*:\s*(\w+)\s*\[([^\]]*)\]((?:\s+(?:scaled|inout))*)")


def _signature(text: str) -> tuple[str, tuple[Spec, ...], tuple[Spec, ...]]:
    """Name, arguments and results of the last program of a text."""
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    starts = [found.start() for found in re.finditer(r"^program\s", text, re.M)]
    found = re.match(r"program\s+([\w.$]+)\s*(?:\{[^}]*\})?\s*(?:\[[^\]]*\])?\s*\((.*?)\)\s*->\s*\((.*?)\)\s*\{", text[starts[-1] :], re.S) if starts else None
    if found is None:
        raise ValueError("program: must be text of the form 'program name(x: f32[2]) -> (y: f32[2]) { ... }', got " + repr(text[:40]))
    inputs = tuple(_spec(part) for part in _PARTS.findall(found[2]))
    by_name = {spec.name: spec for spec in inputs}
    outputs = []
    for part in re.findall(r"[^,\[\]]+(?:\[[^\]]*\][^,]*)?", found[3]):
        typed = _PARTS.match(part)
        outputs.append(_spec(typed.groups()) if typed else by_name[part.split("=")[0].strip()])
    return found[1], inputs, tuple(outputs)


def _spec(part: Sequence[str]) -> Spec:
    name, dtype, extents, words = part
    shape = tuple(int(extent) if extent.strip().isdigit() else extent.strip() for extent in extents.split(",") if extent.strip())
    return Spec(name, dtype, shape, "scaled" in words, "inout" in words)
