"""Program: `scalide.jax.trace` returns one, `scalide.build` compiles one, and a `.scl` file contains one."""
from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from .arrays import read_safetensors, write_safetensors
from .signature import Spec, read_signature
from .tool_process import BuildError, run_process
from .tree import LEAF, Tree, leaf_count
from .words import identifier, name_text, quoted

HEADER = "#: "
#: At the end of a line of a saved program: the source line of the user, without its folder, `  #@ model.py:12:4 (loss)`.
SOURCE = "  #@ "


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """An array program in text form, with the pytrees of its arguments and results. It never changes: methods return new programs.

        program = scalide.jax.trace(loss, params, images, labels)   # or Program.load("loss.scl")
        print(program)
        library = scalide.build(program)                            # library(params, images, labels)
    """

    text: str
    in_tree: Tree = None  #: of (args, kwargs). None: the arguments are passed one after the other
    out_tree: Tree = None
    constants: Mapping[str, Any] = dataclasses.field(default_factory=dict)  #: closed-over arrays by name; they are the last arguments
    policy: str = "f32"  #: the precision policy that `build` uses: a built-in name or a YAML file
    retrace: Callable | None = None  #: traces the gradient of the same function; not saved
    places: Sequence = ()  #: the source location of each line of the text: None, text, or an object that str() turns into text

    def __post_init__(self):
        signature = read_signature(self.text)
        for field in ("name", "inputs", "outputs"):
            object.__setattr__(self, field, getattr(signature, field))
        object.__setattr__(self, "arguments", tuple(spec.name for spec in self.inputs))
        object.__setattr__(self, "results", tuple(spec.name for spec in self.outputs))
        object.__setattr__(self, "_constant_leaves", list(self.constants.values()))
        object.__setattr__(self, "_key_places", [i for i, spec in enumerate(self.inputs) if spec.dtype == "u32" and spec.shape[-1:] == (2,)])

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"Program({self.name}: {len(self.inputs)} arguments, {len(self.outputs)} results, numerics {self.policy})"

    def flatten(self, args: tuple, kwargs: Mapping) -> list:
        """Returns the arrays of a call in the order of `arguments`.

        Raises:
            TypeError: The pytrees differ from those of the traced function.
        """
        if self.in_tree is not None:
            try:
                leaves = self.in_tree.flatten((args, kwargs)) + self._constant_leaves
            except TypeError as error:  # the error has a path in (args, kwargs)
                raise TypeError(f"{self.name}: " + re.sub(r"^\[([01])\]", lambda side: ("args", "kwargs")[int(side[1])], str(error))) from None
            for place in self._key_places:
                leaves[place] = _words_of(leaves[place])
            return leaves
        if kwargs or len(args) != len(self.inputs):
            raise TypeError(f"{self.name}: the number of arrays must be {len(self.inputs)}: {', '.join(self.arguments)}")
        return list(args)

    def flatten_part(self, args: tuple, kwargs: Mapping, constant: bool) -> list:
        """Returns the constant arrays of a call, or the other arrays. `args` and `kwargs` have only the arguments of this part.

        Raises:
            TypeError: The pytrees differ from those of the traced function.
            ValueError: An argument of the function has both constant and other arrays.
        """
        if self.in_tree is None:
            wanted = [spec.name for spec in self.inputs if spec.constant == constant]
            if kwargs or len(args) != len(wanted):
                raise TypeError(f"{self.name}: the number of arrays must be {len(wanted)}: {', '.join(wanted)}")
            return list(args)
        roles = iter(self.inputs)
        positional, named = self.in_tree.parts()
        of_positions = [self._is_constant([next(roles) for _ in range(count)]) for count in positional]
        of_names = {name: self._is_constant([next(roles) for _ in range(count)]) for name, count in named.items()}
        places = [place for place, role in enumerate(of_positions) if role == constant]
        names = {name for name, role in of_names.items() if role == constant}
        kind = "constant arguments" if constant else "arguments that are not constant"
        if len(args) != len(places):
            raise TypeError(f"{self.name}: the number of {kind} by position must be {len(places)}, got {len(args)}")
        if set(kwargs) != names:
            raise TypeError(f"{self.name}: the {kind} by keyword must be {sorted(names)}, got {sorted(kwargs)}")
        whole_args, whole_kwargs = self.in_tree.unflatten([object()] * sum((*positional, *named.values())))
        whole_args = list(whole_args)
        for place, value in zip(places, args):
            whole_args[place] = value
        leaves = self.flatten(tuple(whole_args), {**whole_kwargs, **kwargs})
        return [leaf for leaf, spec in zip(leaves, self.inputs) if spec.constant == constant]

    def _is_constant(self, specs: Sequence[Spec]) -> bool:
        """Returns True if an argument of the traced function, which has these arrays, is constant."""
        roles = {spec.constant for spec in specs}
        if len(roles) > 1:
            raise ValueError(f"{self.name}: the arrays of one argument of the function must be all constant or all not constant, got "
                             f"{', '.join(map(str, specs))}")  # fmt: skip
        return roles == {True}

    def unflatten(self, leaves: Sequence) -> Any:
        """Returns the pytree of the function's results. `leaves` has the arrays in the order of `results`."""
        if self.out_tree is not None:
            return self.out_tree.unflatten(leaves)
        return leaves[0] if len(leaves) == 1 else tuple(leaves)

    def numerics(self, policy) -> Program:
        """Returns the program with another precision policy: a built-in name such as "f8_master", or the path of a YAML file."""
        return dataclasses.replace(self, policy=str(policy))

    def scalify(self) -> Program:
        """Returns the program with every float argument and result scaled. It takes and returns `ScaledArray`s."""
        text = self.text
        for spec, end in reversed(read_signature(text).types):
            if spec.is_float() and not spec.scaled and spec.name not in self.constants:
                text = f"{text[:end]} scaled{text[end:]}"
        return dataclasses.replace(self, text=text, retrace=None)

    def grad(self, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Program:
        """Returns the program of `jax.grad(fn, argnums, has_aux)`.

        JAX differentiates a traced program. Scalide differentiates a program that was loaded, written or scalified. Such a program must have one
        result and no in-place arguments, and has_aux must be False.

        Args:
            argnums: The positional arguments to differentiate, as in `jax.grad`. Without pytrees: positions in `arguments`.
            has_aux: As in `jax.grad`.

        Raises:
            ValueError: The program cannot be differentiated, or an argument does not exist.
        """
        return self._derived("grad", argnums, has_aux)

    def value_and_grad(self, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Program:
        """Returns the program of `jax.value_and_grad(fn, argnums, has_aux)`. Otherwise as `grad`."""
        return self._derived("value_and_grad", argnums, has_aux)

    def _derived(self, transformation: str, argnums, has_aux) -> Program:
        if self.retrace is not None:
            return dataclasses.replace(self.retrace(transformation, argnums, has_aux), policy=self.policy)
        if has_aux or len(self.outputs) != 1 or any(spec.inout for spec in self.inputs):
            raise ValueError(f"cannot take the {transformation} of '{self.name}': a loaded or scalified program must have one result and no in-place arguments, "
                             f"and has_aux must be False. Results: {', '.join(map(str, self.outputs))}. Trace the gradient with "
                             "scalide.jax.trace(jax.grad(fn), ...), then save or scalify it")  # fmt: skip
        wanted, out_tree = self._numbered(argnums)
        made = [self.outputs[0]] * (transformation == "value_and_grad") + wanted
        values = [f"v{place}" for place in range(len(made))]
        results = ", ".join(f"{dataclasses.replace(spec, name=f'out.{place}')} = {value}" for place, (spec, value) in enumerate(zip(made, values)))
        signature = read_signature(self.text)
        inner = self.text.rstrip()
        for begin, end in reversed(signature.constants):  # only the main program may have constants
            inner = inner[:begin].rstrip() + inner[end:]
        head = " ".join(filter(None, [name_text(f"{self.name}_{transformation}"), signature.symbols]))
        text = (f"{inner}\nprogram {head}({signature.arguments}) -> ({results}) {{\n"
                f"  {', '.join(values)} = {transformation}({', '.join(map(name_text, self.arguments))}) "
                f"{{program: {quoted(self.name)}, wrt: [{', '.join(quoted(spec.name) for spec in wanted)}]}}\n}}\n")  # fmt: skip
        if out_tree is not None and transformation == "value_and_grad":
            out_tree = {"tuple": [LEAF, out_tree]}
        places = list(self.places)[: inner.count("\n") + 1]  # the lines of the inner program are the same
        return dataclasses.replace(self, text=text, out_tree=out_tree and Tree(out_tree), places=places)

    def _numbered(self, argnums) -> tuple[list[Spec], Any]:
        """Returns the arguments with these numbers, and their tree. The tree is None if the program has no pytrees."""
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        nodes = [LEAF] * len(self.inputs) if self.in_tree is None else self.in_tree.node["tuple"][0]["tuple"]
        if any(not -len(nodes) <= number < len(nodes) for number in numbers):
            raise ValueError(f"{self.name}: argnums must be indices of the {len(nodes)} positional arguments, from 0, got {argnums}")
        if self.in_tree is None:
            return [self.inputs[number] for number in numbers], None
        ends = list(itertools.accumulate(leaf_count(node) for node in nodes))
        wanted = [self.inputs[ends[number] - leaf_count(nodes[number]) : ends[number]] for number in numbers]
        return sum(map(list, wanted), []), nodes[argnums] if isinstance(argnums, int) else {"tuple": [nodes[number] for number in numbers]}

    def compare(self, *args, numerics: Sequence[str], limit: float | None = None, tensor: str = "", scope: str = "", bisect: bool | str = False,
                state: Mapping[str, Any] | None = None, rules=(), **kwargs):  # fmt: skip
        """Runs the program under two precision policies on the same arrays, and returns the error of each tensor as a `Comparison`, which prints as a table.

            print(program.compare(params, images, labels, numerics=("f32", "f8_master"), bisect=True))

        The runs are interpreted, with the numbers of compiled kernels. This takes seconds for large arrays. Runs the tool.

        Args:
            args, kwargs: The arguments of the traced function. Without pytrees: the arrays, one after the other.
            numerics: The reference, and the policy under test: built-in names or YAML files.
            limit: The relative error beyond which the first tensor is named. Default: four times the unit roundoff of the coarsest format on the way.
            tensor: Only tensors whose name matches this glob.
            scope: Only tensors whose scope matches this glob, such as "block1/**".
            bisect: True, or the name of a result: run again with one scope, rule or tensor kept wide. True means the first scalar result.
            state: The state of the policies, a dict from `Library.init` or a call. Arrays that it does not have start with their initial values.
            rules: YAML files, or folders of YAML files, with operators of your own.

        Raises:
            TypeError: The pytrees differ from the pytrees of the traced function.
            ValueError: `numerics` does not have two policies.
            BuildError: The tool reports an error, such as an unknown policy, tensor or result.
        """
        return _comparers[-1](self, self.flatten(args, kwargs), numerics, limit, tensor, scope, bisect, state or {}, rules)

    def save(self, path) -> None:
        """Writes the program to a file. The first line is a comment with the pytrees and the policy. Comments at the end of lines name the
        source lines of the traced function, without folders.

        Closed-over arrays go to `<path without suffix>.constants.safetensors`.

        Raises:
            ValueError: A pytree has other containers than dicts with text keys, lists, tuples, named tuples and None.
            OSError: The file cannot be written.
        """
        trees = [tree if tree is None else getattr(tree, "node", NotImplemented) for tree in (self.in_tree, self.out_tree)]
        if NotImplemented in trees:
            raise ValueError(f"{self.name}: a saved program can have only dicts with text keys, lists, tuples and named tuples in its arguments and "
                             "results. Trace a function that takes and returns dicts")  # fmt: skip
        header = {"policy": self.policy, "in": trees[0], "out": trees[1], "constants": list(self.constants)}
        Path(path).write_text(HEADER + json.dumps(header) + "\n" + self._with_sources(), encoding="utf-8")
        if self.constants:
            write_safetensors(Path(path).with_suffix(".constants.safetensors"), self.constants)

    def report(self, *runs, output=None, against=(), numerics=None, rules=()) -> str:
        """Writes one HTML page about the program and about a training run, and returns what is unusual as text.

        The page shows tensors by steps, the loss, formats, kernels, memory and the graph. Runs the tool.

        Args:
            runs: Folders of runs, or the `.jsonl` files of one run. Without runs, the page shows the program alone.
            output: The file of the page. Default: the name of the program, with the ending `.html`.
            against: Another run. The page shows how the metrics differ from it. Default: the first one of several runs.
            numerics: The precision policy, or a list of policies to compare. Default: the policy of the program.
            rules: YAML files, or folders of YAML files, with operators of your own.

        Raises:
            BuildError: The tool reports an error, such as a file that it cannot read.
            FileNotFoundError: The tool does not exist.
        """
        page = f"{identifier(self.name)}.html" if output is None else output
        options = [word for policy in _listed(numerics or self.policy) for word in ("--numerics", policy)]
        options += [word for run in _listed(against) for word in ("--against", run)] + [word for path in _listed(rules) for word in ("--rules", path)]
        return "\n".join(self._run_tool("report", *runs, *options, "--output", page).splitlines()[:-1])

    def view(self, output=None, *, numerics=None, target: str = "host", sources=(), rules=()) -> str:
        """Writes one HTML page that shows the program before and after each compiler pass. Returns how many passes change it. Runs the tool.

        Args:
            output: The file of the page. Default: the name of the program, with the ending `.view.html`.
            numerics: The precision policy. Default: the policy of the program.
            target: As in `build`.
            sources: Python files whose text the page shows. Lines of the program link to it.
            rules: YAML files, or folders of YAML files, with operators of your own.

        Raises:
            BuildError: The tool reports an error, such as a file that it cannot read.
            FileNotFoundError: The tool does not exist.
        """
        page = f"{identifier(self.name)}.view.html" if output is None else output
        options = [word for path in _listed(sources) for word in ("--source", path)] + [word for path in _listed(rules) for word in ("--rules", path)]
        return self._run_tool("view", "--numerics", numerics or self.policy, "--target", target, *options, "--output", page).strip()

    def _run_tool(self, command: str, *arguments) -> str:
        """Runs a command of the tool on the program with the lines of the user, and returns what it prints."""
        with tempfile.TemporaryDirectory(prefix="scalide-") as folder:
            file = Path(folder) / f"{identifier(self.name)[:100]}.scl"
            file.write_text(self._with_sources(), encoding="utf-8")
            status, printed, errors = run_process(command, file, *arguments)
        if status != 0:
            raise BuildError(errors.replace(str(file), file.name))
        return printed

    def _with_sources(self) -> str:
        """Returns the text with the source line of the user at the end of each line."""
        lines = self.text.split("\n")
        for number, place in enumerate(self.places[: len(lines)]):
            if place is not None:
                lines[number] += SOURCE + re.sub(r"^.*[/\\\\]", "", str(place))
        return "\n".join(lines)

    def __getstate__(self):
        # retrace holds a function of the caller and places hold frames of JAX: neither can be pickled.
        places = [place if place is None else str(place) for place in self.places]
        return {**self.__dict__, "retrace": None, "places": places}

    def __setstate__(self, state):
        self.__dict__.update(state)

    @classmethod
    def load(cls, path) -> Program:
        """Reads a program from a file that `save` wrote, or from any other `.scl` file.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file contains no program.
        """
        text, header = Path(path).read_text(encoding="utf-8"), {}
        if text.startswith(HEADER):
            line, text = text.split("\n", 1)
            header = json.loads(line[len(HEADER) :])
        constants = {}
        if header.get("constants"):
            constants = read_safetensors(Path(path).with_suffix(".constants.safetensors"), header["constants"])
        trees = [None if header.get(side) is None else Tree(header[side]) for side in ("in", "out")]
        lines = [re.fullmatch(rf"(.*?){SOURCE}([^\"]*)", line) for line in text.split("\n")]
        places = [found and found[2] for found in lines] if any(lines) else ()
        text = "\n".join(found[1] if found else line for found, line in zip(lines, text.split("\n")))
        return cls(text, *trees, constants, header.get("policy", "f32"), places=places)


def _listed(value) -> list:
    """Returns a list of one or several texts or paths."""
    return [value] if isinstance(value, (str, os.PathLike)) else list(value)


_comparers = []


def register_comparer(compare) -> None:
    """Sets the function of `Program.compare`. The module `comparison` calls it, which is on a floor above."""
    _comparers.append(compare)


def _words_of(array):
    """Returns the two words of a random key (jax.random.key()). Returns other arrays unchanged."""
    if not str(getattr(array, "dtype", "")).startswith("key<"):
        return array
    import jax

    return jax.random.key_data(array)
