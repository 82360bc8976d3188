"""The program (.scl) of a kernel of libraries/*.yaml."""
from layer_operators import operands_of


def to_text(value):
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(to_text, value))}]" if isinstance(value, list) else str(value)


def windowed(extent, window, stride, low, high):
    return extent if isinstance(extent, str) else (extent + low + high - window) // stride + 1


def result_shape(op, shapes, at):
    """Returns the shape of the first operator of a kernel."""
    x = shapes[0]
    if op == "dot":
        return [x[0], shapes[1][1]]
    if op == "embedding":
        return shapes[1] + x[1:]
    if op == "mean":
        return [extent for axis, extent in enumerate(x) if axis not in at["axes"]]
    if op == "reduce_window_max":
        return [windowed(*each) for each in zip(x, at["window"], at["strides"], at["low"], at["high"])]
    if op == "conv_general_dilated":
        places = zip(x[1:3], shapes[1][:2], at.get("strides", [1, 1]), at.get("low", [0, 0]), at.get("high", [0, 0]))
        return [x[0], *(windowed(*each) for each in places), shapes[1][3]]
    return x


def program_text(kernel, symbols, name):
    """Returns the text of a program with the operators of the kernel in sequence. The second operand of bias and add is broadcast."""
    shapes, nodes, value, shape = kernel["shapes"], [], None, None
    for place, (op, names) in enumerate(operands_of(kernel)):
        names = [value if each is None else each for each in names]
        attributes = kernel["attributes"] if place == 0 else {}
        if place == 0:
            shape = result_shape(op, [shapes[each] for each in names], attributes)
        elif op in ("bias", "add") and shapes[names[1]] != shape:
            dims = list(range(len(shape) - len(shapes[names[1]]), len(shape)))
            nodes.append(f"wide{place} = broadcast_in_dim({names[1]}) {{dims: {dims}, shape: {to_text(shape)}}}")
            names[1] = f"wide{place}"
        value = "out" if place == len(kernel["ops"]) - 1 else f"value{place}"
        written = f" {{{', '.join(f'{key}: {to_text(each)}' for key, each in attributes.items())}}}" if attributes else ""
        nodes.append(f"{value} = {'add' if op == 'bias' else op}({', '.join(names)}){written}")
    used = {extent for each in shapes.values() for extent in each if isinstance(extent, str)}
    bounds = ", ".join(f"{symbol} in {at['min']}..{at['max']}" for symbol, at in symbols.items() if symbol in used)
    arguments = ", ".join(f"{each}: {kernel['dtypes'][each]}{to_text(shapes[each])}" for each in shapes)
    result = f"out: {next(iter(kernel['dtypes'].values()))}{to_text(shape)}"
    body = "".join(f"  {node}\n" for node in nodes)
    return f"program {name} [{bounds}] ({arguments}) -> ({result}) {{\n{body}}}\n"
