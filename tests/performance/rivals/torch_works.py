"""The works in PyTorch: eager, compiled, and for convolutions with channels last."""
import torch
import torch.nn.functional as F
from works import HEADS, RATE, inputs

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i8": torch.int8, "i32": torch.int32, "f8": torch.float8_e4m3fn}
E4M3 = torch.float8_e4m3fn


def version(threads):
    torch.set_num_threads(threads)
    return f"torch {torch.__version__.split('+')[0]}"


def matmul(a, b):
    if a.dtype == torch.int8:
        return torch._int_mm(a, b)
    if a.dtype == E4M3:
        one = torch.ones(())
        return torch._scaled_mm(a, b, one, one, out_dtype=torch.float32)
    return torch.mm(a, b)


def transposed_matmul(a, b):
    return a.t() @ b


def dense_layers(params, x):
    for weight, bias in zip(params[:-2:2], params[1:-2:2]):
        x = F.relu(torch.addmm(bias, x, weight))
    return torch.addmm(params[-1], x, params[-2])


def mlp_forward(*arrays):
    return dense_layers(arrays[:-1], arrays[-1])


def mlp_loss(*arrays):
    *params, x, y = arrays
    return F.cross_entropy(dense_layers(params, x), y)


def cnn_loss(*arrays):
    """Kernels and images are in the order of torch: see images_first."""
    *params, x, y = arrays
    for weight, bias in (params[:2], params[2:4]):
        x = F.avg_pool2d(F.relu(F.conv2d(x, weight, bias, padding=1)), 2)
    return F.cross_entropy(dense_layers(params[4:], x.permute(0, 2, 3, 1).flatten(1)), y)


def layer_forward(*arrays):
    gain1, bias1, qkv, qkv_bias, out, out_bias, gain2, bias2, up, up_bias, down, down_bias, x = arrays
    batch, tokens, hidden = x.shape

    def dense(x, weight, bias):
        return torch.addmm(bias, x.reshape(-1, x.shape[-1]), weight).view(batch, tokens, -1)

    q, k, v = dense(F.layer_norm(x, (hidden,), gain1, bias1), qkv, qkv_bias).view(batch, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
    x = x + dense(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape), out, out_bias)
    return x + dense(F.gelu(dense(F.layer_norm(x, (hidden,), gain2, bias2), up, up_bias), approximate="tanh"), down, down_bias)


def layer_loss(*arrays):
    return layer_forward(*arrays).float().sum()


def layer_norm_gradient(x, gain, bias, dy):
    _, mean, deviation = torch.ops.aten.native_layer_norm(x, gain.shape, gain, bias, 1e-5)
    return torch.ops.aten.native_layer_norm_backward(dy, x, gain.shape, mean, deviation, gain, bias, [True, True, True])


def rms_norm(x, gain):
    return F.rms_norm(x, gain.shape, gain, 1e-5)


def class_loss(x, labels):
    return F.cross_entropy(x.float(), labels)


def to_e4m3(wide):
    return wide.clamp(-448, 448).to(E4M3)


def amax_cast(x, scale):
    return x.abs().amax(), to_e4m3(x.float() * scale)


def amax_then_cast(x):
    scale = 448 / x.abs().amax().float()
    return scale, to_e4m3(x.float() * scale)


def cast_transpose(x, scale):
    cast = to_e4m3(x.float() * scale)
    return cast, cast.t().contiguous()


def embedding_gradient(table, ids, dy):
    return torch.ops.aten.embedding_dense_backward(dy, ids, table.shape[0], -1, False)


FUNCTIONS = {
    "matmul": matmul, "transposed_matmul": transposed_matmul, "mlp_forward": mlp_forward, "layer_forward": layer_forward,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "gelu_erf": F.gelu, "bias_gelu": lambda x, bias: F.gelu(x + bias, approximate="tanh"),
    "softmax": lambda x: F.softmax(x, -1), "layer_norm": lambda x, gain, bias: F.layer_norm(x, gain.shape, gain, bias),
    "layer_norm_gradient": layer_norm_gradient, "rms_norm": rms_norm, "amax_cast": amax_cast, "amax_then_cast": amax_then_cast,
    "cast_transpose": cast_transpose, "transpose": lambda x: x.t().contiguous(), "dropout": lambda x, seed: F.dropout(x, 0.1, training=True),
    "maximum_middle": lambda x: x.amax(1), "mean_middle": lambda x: x.mean((1, 2)), "concatenation": lambda *arrays: torch.cat(arrays, 1),
    "roll": lambda x: torch.roll(x, 1000, 1), "embedding_gradient": embedding_gradient,
    "convolution": lambda x, kernel: F.conv2d(x, kernel, padding="same"),
    "convolution_transposed": lambda x, kernel: F.conv_transpose2d(x, kernel, stride=2, padding=1),
}  # fmt: skip
IMAGES = {"cnn_step", "convolution", "convolution_transposed"}
# The loss, and how many of the last inputs are data without a gradient.
STEPS = {"mlp_step": (mlp_loss, 2), "cnn_step": (cnn_loss, 2), "layer_step": (layer_loss, 0), "cross_entropy_gradient": (class_loss, 1)}


def variants(work):
    for layout in ("channels first", "channels last") if work.function in IMAGES else ("",):
        for mode in ("eager", "compile"):
            yield f"{mode}, {layout}" if layout else mode, lambda work, mode=mode, layout=layout: variant(work, mode, layout)


def variant(work, mode, layout):
    torch._dynamo.reset()
    arrays = [torch.from_numpy(numbers).to(TYPES[array.dtype]) for array, numbers in zip(work.arrays, inputs(work))]
    if layout:
        arrays = images_first(work, arrays, layout)
    if work.dtype == "f8":
        arrays[1] = arrays[1].t().contiguous().t()  # the layout that _scaled_mm demands
    if work.function == "adamw":
        return adamw(arrays, mode)
    if work.function in STEPS:
        return step(work, arrays, mode, layout)
    return plain(work, arrays, mode, layout)


def images_first(work, arrays, layout):
    """Returns images as [batch, features, height, width], and kernels as [out, in, height, width], transposed ones as [in, out, height, width]."""
    order = (2, 3, 0, 1) if work.function == "convolution_transposed" else (3, 2, 0, 1)
    if work.function == "convolution_transposed":
        arrays[1] = arrays[1].flip(0, 1)  # torch mirrors the kernel
    memory = torch.channels_last if layout == "channels last" else torch.contiguous_format
    images = {len(arrays) - 2 if work.function == "cnn_step" else 0}
    return [array.permute((0, 3, 1, 2) if place in images else order).contiguous(memory_format=memory) if array.ndim == 4 else array
            for place, array in enumerate(arrays)]  # fmt: skip


def images_last(tensor, is_kernel):
    return tensor.permute((2, 3, 1, 0) if is_kernel else (0, 2, 3, 1)) if tensor.ndim == 4 else tensor


def numbers_of(tensors, layout="", kernels=False):
    return [(images_last(tensor, kernels) if layout else tensor).detach().float().contiguous().numpy() for tensor in tensors]


def leaves(made):
    return list(made) if isinstance(made, (tuple, list)) else [made]


def plain(work, arrays, mode, layout):
    function = FUNCTIONS[work.function]
    if mode == "compile":
        function = torch.compile(function, dynamic=False)
    last = []

    def call():
        with torch.inference_mode():
            last[:] = leaves(function(*arrays))

    return call, lambda: numbers_of(last, layout)


def step(work, arrays, mode, layout):
    """A loss, its gradients, and the update if the work has one."""
    loss, data = STEPS[work.function]
    wanted = [array.requires_grad_() for array in arrays[:len(arrays) - data]]
    if arrays[-1].dtype == torch.int32:
        arrays[-1] = arrays[-1].long()
    function = torch.compile(loss, dynamic=False) if mode == "compile" else loss
    optimizer = torch.optim.SGD(wanted, lr=RATE, fused=True) if work.donated else None
    last = []

    def call():
        for array in wanted:
            array.grad = None
        value = function(*arrays)
        value.backward()
        last[:] = [value]
        if optimizer:
            optimizer.step()

    def results():
        if optimizer:
            return numbers_of([*wanted, *last], layout, kernels=True)
        gradients = [array.grad for array in wanted]
        return numbers_of(gradients if work.function == "layer_step" else [*last, *gradients])

    return call, results


def adamw(arrays, mode):
    p, _, _, gradient = arrays
    p = torch.nn.Parameter(p)
    p.grad = gradient
    optimizer = torch.optim.AdamW([p], lr=1e-3, weight_decay=1e-2, fused=mode == "eager", foreach=False)
    call = torch.compile(optimizer.step) if mode == "compile" else optimizer.step

    def results():
        state = optimizer.state[p]
        return numbers_of([p, state["exp_avg"], state["exp_avg_sq"]])

    return call, results
