"""Tests executables with generators: `generators`, and the places of the source in messages and in `explain`. Usage: dsl_test.py SCALIDE GENERATOR."""
import struct
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
from tool import Scratch, floats, read_safetensors, safetensors, unpack_floats  # noqa: E402

LIST = """program        parameter  default  values
layers         depth      2        an integer in [-2147483648, 2147483647]
layers         causal     true     one of false, true
layers         rate       0.5      a number
layers_state   depth      2        an integer in [-2147483648, 2147483647]
layers_state   causal     true     one of false, true
layers_state   rate       0.5      a number
macros         -          -        -
padded_layers  -          -        -
roots          most       100      an integer in [-2147483648, 2147483647]
unqualified    -          -        -
wrong          -          -        -
"""


def error_of(scratch, *arguments):
    result = scratch.run(*arguments)
    assert result.returncode == 1, result
    return result.stderr.strip()


def line_of(words):
    return next(i for i, line in enumerate((HERE / "dsl_programs.cpp").read_text().splitlines(), 1) if words in line)


def listed(tool, generator):
    assert generator.succeed("generators") == LIST, generator.succeed("generators")
    error = "error: this executable contains no generators. add_scalide_generator in CMake makes one that does"
    assert error_of(tool, "generators") == error


def explained(generator):
    rows = [line.split() for line in generator.succeed("explain", "layers", "-n", "f8_master").splitlines()]
    names = {row[0] for row in rows}
    assert {"w.0", "w.1", "hidden", "loss"} <= names, names
    # The compiler gives the initializer of a member the place of the constructor, here of the class.
    places = {row[0]: row[-1] for row in rows if "argument" in row[1:3]}
    assert places["w.0"] == f"dsl_programs.cpp:{line_of('class Layers')}", places
    operands = {row[-1] for row in rows if row[0] == "hidden" and row[1].startswith("dot_general")}
    assert operands == {f"dsl_programs.cpp:{line_of('h = dot(h')}"}, operands


def first_values(generator):
    rows = [line.split() for line in generator.succeed("explain", "layers_state", "-p", "depth=3").splitlines()]
    assert [row[0] for row in rows if row[1] == "result"] == ["w.0", "w.1", "w.2"], rows


def padded_layers(generator):
    """The text has the pairs of padding, and an index of 64 bits becomes one of 32."""
    text = generator.succeed("build", "padded_layers", "-o", "out", "--dump-after", "infer_types")
    for part in ("padding: same", "padding: [[1, 2], [0, 3]]", "padding: [[0, 0], [0, 0], [1, 1], [1, 2]]", "ids: i64[b]", "= narrow_index(ids) : i32[b]",
                 "dtype: i64} : i64[b]"):  # fmt: skip
        assert part in text, text


def loops(generator):
    """A compiled `while` ends when its test is false, or with the line of the user when it has made `max_steps` steps."""
    roots = [1.0, 2.0, 3.0]
    generator.write("a.safetensors", safetensors({"a": ("F32", [3], floats(*(root * root for root in roots)))}))
    run = ("run", "roots", "-i", "a.safetensors", "-o", "roots.safetensors")
    generator.succeed(*run)
    arrays = {name: content for name, (_, _, content) in read_safetensors(generator.path / "roots.safetensors").items()}
    assert struct.unpack("<i", arrays["steps"]) == (4,), arrays
    for name in ("x", "more"):
        assert all(abs(x - root) < 1e-3 for x, root in zip(unpack_floats(arrays[name]), roots)), arrays
    generator.succeed(*run, "-p", "most=4")
    error = error_of(generator, *run, "-p", "most=3")
    assert f"(dsl_programs.cpp:{line_of('while_loop(')})" in error and "the loop may have at most 3 steps" in error, error
    text = generator.succeed("build", "roots", "-o", "out", "--dump-after", "inline_calls")
    assert text.count("= while(") == 1 and "scan" not in text, text


def refused(generator):
    error = error_of(generator, "explain", "wrong")
    place = f"dsl_programs.cpp:{line_of('the sum is wrong')}: add: the shapes of the operands must broadcast, got [b, 4] and [8]. "
    assert place in error and error.endswith("Scope: head"), error
    error = error_of(generator, "explain", "layer")
    assert error == "error: unknown generator 'layer'. Did you mean 'layers'?", error
    error = error_of(generator, "explain", "layers", "-p", "dept=3")
    assert error == "error: generator 'layers' has no parameter 'dept'. Did you mean 'depth'? Parameters: depth, causal, rate", error


def main():
    with Scratch(sys.argv[1]) as tool, Scratch(sys.argv[2]) as generator:
        listed(tool, generator)
        explained(generator)
        first_values(generator)
        padded_layers(generator)
        loops(generator)
        refused(generator)


main()
