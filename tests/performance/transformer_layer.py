#!/usr/bin/env python3
"""A transformer layer, forward and backward, as a program: that of TransformerEngine's quickstart (layer_norm, attention, layer_norm, MLP with
gelu), without dropout. Linear layers in f8, attention in bf16 (transformer_layer.yaml).

Usage: transformer_layer.py [SHRINK]   prints the program; SHRINK divides its sizes
       transformer_layer.py --rival    times TransformerEngine's layer, where PyTorch and it are installed, and prints a JSON line
"""
import json
import sys

BATCH, LENGTH, HIDDEN, HEADS, INNER = 4, 2048, 4096, 32, 16384


def program(shrink=1):
    """Programs `layer` and `step`, which gives the gradients. Sizes are those of the quickstart, divided by `shrink`, a power of two."""
    length, hidden, heads, inner = LENGTH // shrink, HIDDEN // shrink, max(1, HEADS // shrink), INNER // shrink
    rows = BATCH * length
    shapes = {"x": [rows, hidden], "dy": [rows, hidden], "g1": [hidden], "b1": [hidden], "wqkv": [hidden, 3 * hidden], "cqkv": [3 * hidden], "wo": [hidden, hidden],
              "co": [hidden], "g2": [hidden], "b2": [hidden], "w1": [hidden, inner], "c1": [inner], "w2": [inner, hidden], "c2": [hidden]}  # fmt: skip
    arguments = ", ".join(f"{name}: bf16{shape}" for name, shape in shapes.items())
    wanted = [name for name in shapes if name != "dy"]

    def linear(x, w, c, out):
        return f"""{out}_product = dot_general({x}, {w}) {{contract: [[1], [0]]}}
  {out}_bias = broadcast_in_dim({c}) {{dims: [1], shape: {[rows, shapes[c][0]]}}}
  {out} = add({out}_product, {out}_bias)"""

    def heads_of(place, out):
        return f"""{out}_flat = slice(qkv) {{start: {[0, place * hidden]}, limit: {[rows, (place + 1) * hidden]}}}
    {out} = reshape({out}_flat) {{shape: {[BATCH, length, heads, hidden // heads]}}}"""

    return f"""program layer({arguments}) -> (loss: f32[]) {{
  n1 = layer_norm(x, g1, b1)
  {linear("n1", "wqkv", "cqkv", "qkv")}
  scope "attention" {{
    {heads_of(0, "q")}
    {heads_of(1, "k")}
    {heads_of(2, "v")}
    mixed = attention(q, k, v) {{causal: true}}
    joined = reshape(mixed) {{shape: {[rows, hidden]}}}
  }}
  {linear("joined", "wo", "co", "attended")}
  r = add(attended, x)
  n2 = layer_norm(r, g2, b2)
  {linear("n2", "w1", "c1", "inner")}
  g = gelu_tanh(inner)
  {linear("g", "w2", "c2", "outer")}
  y = add(outer, r)
  t = mul(y, dy)
  wide = convert_element_type(t) {{dtype: f32}}
  loss = reduce_sum(wide) {{axes: [0, 1]}}
}}
program step({arguments}) -> (loss: f32[], {", ".join(f"d_{name}: bf16{shapes[name]}" for name in wanted)}) {{
  loss, {", ".join(f"d_{name}" for name in wanted)} = value_and_grad({", ".join(shapes)}) {{program: layer, wrt: [{", ".join(wanted)}]}}
}}
"""


def time_rival():
    import torch
    import transformer_engine.pytorch as te
    from transformer_engine.common import recipe

    layer = te.TransformerLayer(HIDDEN, INNER, HEADS, hidden_dropout=0, attention_dropout=0, params_dtype=torch.bfloat16, fuse_qkv_params=True).cuda()
    x = torch.rand(LENGTH, BATCH, HIDDEN, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    dy = torch.rand_like(x)
    scaling = recipe.DelayedScaling(fp8_format=recipe.Format.HYBRID, amax_history_len=16, amax_compute_algo="max")

    def step():
        with te.fp8_autocast(enabled=True, fp8_recipe=scaling):
            y = layer(x, attention_mask=None)
        y.backward(dy)

    for _ in range(10):
        step()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    least = 1e30
    for _ in range(5):
        begin.record()
        for _ in range(10):
            step()
        end.record()
        torch.cuda.synchronize()
        least = min(least, begin.elapsed_time(end) / 10)
    print(json.dumps({"ms": least, "version": te.__version__ if hasattr(te, "__version__") else ""}))


if __name__ == "__main__":
    if sys.argv[1:] == ["--rival"]:
        time_rival()
    elif len(sys.argv) <= 2 and all(word.isdigit() for word in sys.argv[1:]):
        print(program(*map(int, sys.argv[1:])), end="")
    else:
        sys.exit(__doc__)
