"""The operators of layers.py: how many operands each takes, its value in NumPy (of float64 arrays) and in torch."""
import importlib
import math

# After the first operator of a sequence, the first operand is the result of the operator before.
OPERANDS = {"conv_general_dilated": 2, "reduce_window_max": 1, "mean": 1, "dot": 2, "bias": 2, "add": 2, "mul": 2, "relu": 1, "gelu": 1, "silu": 1, "layer_norm": 3,
            "rms_norm": 2, "embedding": 2, "attention": 3, "rotary": 2}  # fmt: skip
EPSILON = 1e-5  # of layer_norm and rms_norm


def operands_of(kernel):
    """Yields each operator of a kernel with the names of its operands. None is the result of the operator before."""
    names = list(kernel["shapes"])
    for place, op in enumerate(kernel["ops"]):
        count = OPERANDS[op] - (place > 0)
        yield op, [None] * (place > 0) + names[:count]
        names = names[count:]


def evaluate(kernel, arrays, operators):
    """Returns the value of a kernel by the functions of NumpyOperators or TorchOperators."""
    value = None
    for op, names in operands_of(kernel):
        value = getattr(operators, op)(*(value if name is None else arrays[name] for name in names), kernel["attributes"])
    return value


class NumpyOperators:
    """Operators of float64 arrays. Images are [batch, height, width, features], weights [height, width, input features, features]."""

    def __init__(self):
        self.np = importlib.import_module("numpy")
        self.add = self.bias = lambda x, y, _: x + y
        self.mul = lambda x, y, _: x * y
        self.dot = lambda x, w, _: x @ w
        self.mean = lambda x, at: x.mean(axis=tuple(at["axes"]))
        self.relu = lambda x, _: self.np.maximum(x, 0)
        self.silu = lambda x, _: x / (1 + self.np.exp(-x))
        self.gelu = lambda x, _: x * (1 + self.np.vectorize(math.erf)(x / math.sqrt(2))) / 2
        self.embedding = lambda table, ids, _: table[ids]

    def windows(self, x, window, at, axes, fill):
        strides = at.get("strides", [1] * len(axes))
        padding = list(zip(at["low"], at["high"])) if "low" in at else [(0, 0)] * len(axes)
        pads = [padding[axes.index(axis)] if axis in axes else (0, 0) for axis in range(x.ndim)]
        views = self.np.lib.stride_tricks.sliding_window_view(self.np.pad(x, pads, constant_values=fill), window, axes)
        return views[tuple(slice(None, None, strides[axes.index(axis)]) if axis in axes else slice(None) for axis in range(x.ndim))]

    def conv_general_dilated(self, x, w, at):
        return self.np.tensordot(self.windows(x, w.shape[:2], at, (1, 2), 0), w, ((4, 5, 3), (0, 1, 2)))

    def reduce_window_max(self, x, at):
        return self.windows(x, at["window"], at, (0, 1, 2, 3), -math.inf).max(axis=(4, 5, 6, 7))

    def layer_norm(self, x, gain, bias, _):
        d = x - x.mean(axis=-1, keepdims=True)
        return d / self.np.sqrt((d * d).mean(axis=-1, keepdims=True) + EPSILON) * gain + bias

    def rms_norm(self, x, gain, _):
        return x / self.np.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON) * gain

    def attention(self, query, key, value, at):
        group = query.shape[2] // key.shape[2]
        key, value = (self.np.repeat(array, group, axis=2) for array in (key, value))
        scores = self.np.einsum("bmhd,bnhd->bhmn", query, key) / math.sqrt(query.shape[3])
        if at.get("causal"):
            scores = self.np.where(self.np.tri(*scores.shape[2:], dtype=bool), scores, -math.inf)
        weights = self.np.exp(scores - scores.max(axis=-1, keepdims=True))
        return self.np.einsum("bhmn,bnhd->bmhd", weights / weights.sum(axis=-1, keepdims=True), value)

    def rotary(self, x, positions, _):
        half = x.shape[-1] // 2
        angle = positions[:, None, None] * 10000.0 ** (-self.np.arange(half) / half)
        first, second, cos, sin = x[..., :half], x[..., half:], self.np.cos(angle), self.np.sin(angle)
        return self.np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


class TorchOperators:
    """The same operators as a user of torch writes them. Convolutions get images and weights in torch's order of axes, channels last in memory."""

    def __init__(self):
        self.torch = importlib.import_module("torch")
        functional = importlib.import_module("torch.nn.functional")
        self.functional = functional
        self.add = self.bias = lambda x, y, _: x + y
        self.mul = lambda x, y, _: x * y
        self.dot = lambda x, w, _: x @ w
        self.mean = lambda x, at: x.mean(dim=tuple(at["axes"]))
        self.relu = lambda x, _: functional.relu(x)
        self.silu = lambda x, _: functional.silu(x)
        self.gelu = lambda x, _: functional.gelu(x)
        self.embedding = lambda table, ids, _: functional.embedding(ids, table)
        self.layer_norm = lambda x, gain, bias, _: functional.layer_norm(x, gain.shape, gain, bias, EPSILON)
        self.rms_norm = lambda x, gain, _: functional.rms_norm(x, gain.shape, gain, EPSILON)

    def conv_general_dilated(self, x, w, at):
        result = self.functional.conv2d(x.permute(0, 3, 1, 2), w, None, at.get("strides", 1), at.get("low", 0))
        return result.permute(0, 2, 3, 1)

    def reduce_window_max(self, x, at):
        return self.functional.max_pool2d(x.permute(0, 3, 1, 2), at["window"][1], at["strides"][1], at["low"][1]).permute(0, 2, 3, 1)

    def attention(self, query, key, value, at):
        query, key, value = (array.transpose(1, 2) for array in (query, key, value))
        mixed = self.functional.scaled_dot_product_attention(query, key, value, is_causal=at.get("causal", False), enable_gqa=query.shape[1] != key.shape[1])
        return mixed.transpose(1, 2)

    def rotary(self, x, positions, _):
        half = x.shape[-1] // 2
        angle = positions[:, None, None] * 10000.0 ** (-self.torch.arange(half) / half)
        first, second, cos, sin = x[..., :half], x[..., half:], self.torch.cos(angle), self.torch.sin(angle)
        return self.torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
