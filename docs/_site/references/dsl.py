"""The page of the C++ functions: classes of the public headers, then one function for each operator, by family."""
import re
import subprocess
import tempfile
from pathlib import Path

from references.operators import by_family
from references.tables import plain, table

HEAD = """# The C++ functions

You write a program in C++ with these classes and functions, all in the namespace `scalide`. A source includes `<scalide/generator.h>`.
[Write a program in C++](../start/cpp.md) is the tutorial. Arguments in brackets are optional. Each operator has [a page](operators/index.md).

"""
HEADERS = [("Programs and parameters", "generator.h"), ("Tensors", "tensor.h"), ("Layers", "dense.h"),
           ("First values of states (namespace `scalide::initializers`)", "initializers.h"),
           ("Optimizers (`<scalide/optimizers.h>`)", "optimizers.h"), ("Schedules (`<scalide/optimizers.h>`)", "learning_rates.h"),
           ("Column-quantized arrays (`<scalide/optimizers.h>`)", "quantized_columns.h"),
           ("Loss scaling (`<scalide/loss_scaling.h>`)", "loss_scaling.h"),
           ("Loops and branches (`<scalide/loops.h>`)", "loops.h"),
           ("Reductions by your own function", "reductions.h"), ("Trees of tensors (namespace `scalide::tree`)", "tree.h")]  # fmt: skip
#: The line of the caller, which callers leave out.
PLACE = re.compile(r"(,\s*)?const std::source_location &\w+ = std::source_location::current\(\)")
#: What the headers document for Scalide itself.
HIDDEN = re.compile(r"^struct (TensorIndex|TensorUse|ParameterDescription|Declaration|Features)\b|^(class )?~?AssignedTensor\b|^CalledGenerator\(|\b(call_generator|check_tensor_\w+|generator_parameters|parameter_text|parameter_type|take_parameter|parse_parameter|parse_word_parameter|finish|states|declarations|add_like|GeneratorProgram|register_generator|generator_names|run_generator|ValueId)\b|^class GeneratorBase$")


def declarations(text):
    """(declaration, comment) of what a header documents with `///`."""
    for match in re.finditer(r"(?P<doc>(?:^ *///(?!<).*\n)+)(?P<code>(?:^(?! *///).*\S.*\n)+)", text, re.M):
        lines = [re.sub(r"^ */// ?", "", line) for line in match["doc"].splitlines()]
        doc = " ".join(line.strip() for line in lines if not line.startswith("    "))
        code = re.sub(r"^template<>\s*", "", match["code"].strip())
        code = PLACE.sub("", code.replace(" = {}", " = default"))
        code = " ".join(re.split(r"[;{]|\n *return|\s:\s(?!public)", code, maxsplit=1)[0].split())
        code = re.sub(r" requires\(.*\)$", "", code)
        if not code.startswith(("namespace", "#", "friend")) and not HIDDEN.search(code):
            yield code, doc


def functions(header):
    """{operator: (signature, comment)} of the generated header."""
    found = {}
    for doc, name, arguments in re.findall(r"^/// (.*)\n+inline [\w:<>, ]+? (\w+)\((.*)\) \{$", header, re.M):
        words = []
        for argument in re.findall(r"(?:const )?[\w:]+(?:<(?:[^<>]|<[^<>]*>)*>)? ?&?(\w+)( = [^,]*)?(?:, |$)", arguments):
            if argument[0] != "place":
                words.append(f"[{argument[0]}]" if argument[1] else argument[0])
        operator = name.rstrip("_")
        found.setdefault(operator, (f"{name}({', '.join(words)})", doc))
    return found


def page(tool, root):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "operators.h"
        subprocess.run([tool, "rules", "--header", file], check=True, stdout=subprocess.DEVNULL)
        header = file.read_text()
    listed = subprocess.run([tool, "rules"], capture_output=True, text=True, check=True).stdout
    families = dict(re.findall(r"^\| \[(\w+)\]\(\S+\) \| (\w+)", listed, re.M))
    text = HEAD
    for title, name in HEADERS:
        rows = [(f"`{code}`", plain(doc)) for code, doc in declarations((root / "generators/frontend" / name).read_text())]
        text += f"## {title}\n\n" + table(["declaration", "meaning"], rows) + "\n"
    known = functions(header)
    for title, operators in by_family({name: family for name, family in families.items() if name in known}):
        rows = [(f"[`{known[name][0]}`](operators/{name}.md)", plain(known[name][1])) for name in operators]
        text += f"## {title}\n\n" + table(["function", "meaning"], rows) + "\n"
    return text
