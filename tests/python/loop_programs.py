"""Functions with loops and branches, and their arguments: what users of JAX write, and functions of JAX that contain loops."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.ode import odeint

N = 7  #: more steps than are unrolled


def draw(seed, *shape):
    return np.asarray(np.random.default_rng(seed).normal(size=shape), np.float32)


W, H, XS = draw(0, 3, 3) / 2, draw(1, 3), draw(2, N, 3)
TALL = draw(3, 200, 3)
KEY = np.asarray([1, 2], np.uint32)


def cell(w, h, x):
    h = jnp.tanh(h @ w + x)
    return h, jnp.sum(h * h)


def rnn(w, h, xs):
    return lax.scan(lambda h, x: cell(w, h, x), h, xs)


def nested(w, h, xs):
    def outer(h, x):
        h, sums = lax.scan(lambda h, row: cell(w, h, row * x), h, xs)
        return h, (sums, x.sum())

    return lax.scan(outer, h, xs[::-1])


def pytrees(w, h, xs):
    def step(carry, x):
        c, (n, flag) = carry["c"], carry["state"]
        c = jnp.where(flag, c @ w, c) + x["a"]
        return {"c": c, "state": (n + 1, c[0] > 0)}, {"sum": c.sum(), "n": n, "none": None, "flag": flag, "b": x["b"] * 2}

    return lax.scan(step, {"c": h, "state": (jnp.int32(0), jnp.bool_(True))}, {"a": xs, "b": jnp.arange(N)})


def rotation(x):
    return lax.scan(lambda c, _: ((c[1], c[0] + c[1]), None), (x, x), None, length=N)


def same_init_twice(xs):
    zero = jnp.zeros(3)
    return lax.scan(lambda c, x: ((c[0] + x, c[1] - x), None), (zero, zero), xs)


def integers(xs):
    """A cumulative maximum with a reset."""
    return lax.scan(lambda m, x: (jnp.where(x == 3, 0, jnp.maximum(m, x)),) * 2, jnp.int32(0), (xs[:, 0] * 4).astype(jnp.int32))


def keys(key, x):
    def step(state, row):
        key, x = state
        key, own = jax.random.split(key)
        return (key, x + jax.random.normal(own, x.shape)), jax.random.bits(own)

    return lax.scan(step, (key, x), jnp.arange(N))


def typed_keys(key, x):
    carry, out = keys(jax.random.wrap_key_data(key), x)
    return jax.random.key_data(carry[0]), carry[1], out


def dropout_of_layers(key, w, x):
    def layer(x, key):
        keep = jax.random.bernoulli(key, 0.5, x.shape)
        return jnp.where(keep, jnp.tanh(x @ w), 0), None

    return lax.scan(layer, x, jax.random.split(key, N))[0].sum()


def attention_by_blocks(q, k, v):
    """Softmax in one pass: the running maximum and sum of flash attention."""

    def block(carry, kv):
        m, s, o = carry
        scores = q @ kv[0].T
        new = jnp.maximum(m, scores.max(-1))
        p, scale = jnp.exp(scores - new[:, None]), jnp.exp(m - new)
        return (new, s * scale + p.sum(-1), o * scale[:, None] + p @ kv[1]), None

    init = jnp.full(len(q), -jnp.inf), jnp.zeros(len(q)), jnp.zeros((len(q), v.shape[-1]))
    (_, s, o), _ = lax.scan(block, init, (k, v))
    return o / s[:, None]


def buffer_of_rows(x):
    """Writes rows of a carried array."""
    return lax.fori_loop(0, N, lambda i, table: table.at[i % 4].add(x[i]), jnp.zeros((4, 3)))


def ssm(a, b, x):
    """A diagonal state space model."""
    return lax.scan(lambda h, u: ((h := jnp.exp(-jnp.abs(a)) * h + b * u), h.sum()), jnp.zeros(3), x)[1]


def kalman(a, z):
    def step(state, z):
        mean, var = state
        mean, var = a * mean, a * a * var + 0.1
        gain = var / (var + 0.5)
        return (mean + gain * (z - mean), (1 - gain) * var), (mean, gain)

    return lax.scan(step, (jnp.float32(0), jnp.float32(1)), z)


def viterbi(w, xs):
    def forward(score, x):
        all_scores = score[:, None] + w
        return all_scores.max(0) + x, all_scores.argmax(0)

    score, back = lax.scan(forward, jnp.zeros(3), xs)
    last, path = lax.scan(lambda state, row: (row[state], state), score.argmax(), back, reverse=True)
    return score.max(), last, path


def ctc_like(w, xs):
    """log-sum-exp recursion."""
    return lax.scan(lambda a, x: (jax.nn.logsumexp(a[:, None] + w, axis=0) + x, None), jnp.zeros(3), xs)[0].max()


def runge_kutta(w, x):
    def step(x, _):
        f = lambda x: jnp.tanh(w @ x) - x  # noqa: E731
        k1 = f(x)
        k2 = f(x + 0.05 * k1)
        return x + 0.1 * k2, x

    return lax.scan(step, x, None, length=12)


def checkpointed_layers(w, x):
    return lax.scan(jax.checkpoint(lambda h, w: (jnp.tanh(jnp.tanh(h @ w) @ w), None)), x, jnp.stack([w] * N))[0].sum()


def checkpoint_around(w, h, xs):
    return jax.checkpoint(lambda w: rnn(w, h, xs)[1].sum())(w)


def two_levels_of_checkpoints(w, h, xs):
    @jax.checkpoint
    def outer(h, x):
        return lax.scan(jax.checkpoint(lambda h, row: cell(w, h, row * x)), h, xs)[0], None

    return lax.scan(outer, h, xs)[0].sum()


@jax.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))


def custom_gradient(w, h, xs):
    return lax.scan(lambda h, x: (clipped(jnp.tanh(h @ w + x)), None), h, xs)[0].sum()


def microbatches(w, xs):
    """Accumulates gradients, then descends."""

    def loss(w, x):
        return jnp.mean((x @ w - 1) ** 2)

    def add(total, x):
        value, gradient = jax.value_and_grad(loss)(w, x)
        return total + gradient, value

    total, values = lax.scan(add, jnp.zeros_like(w), xs)
    return w - 0.1 * total / N, values


def learned_steps(w, x):
    """A gradient through steps of gradient descent."""

    def loss(w, y):
        return jnp.sum(jnp.tanh(w @ y) ** 2) + jnp.sum((y - x) ** 2)

    return lax.fori_loop(0, N, lambda _, y: y - 0.1 * jax.grad(loss, 1)(w, y), x).sum()


SCANS = {
    "rnn": (rnn, W, H, XS),
    "rnn.long": (rnn, W, H, TALL),
    "rnn.reverse": (lambda w, h, xs: lax.scan(lambda h, x: cell(w, h, x), h, xs, reverse=True), W, H, XS),
    "nested": (nested, W, H, XS),
    "pytrees": (pytrees, W, H, XS),
    "rotation": (rotation, H),
    "same_init_twice": (same_init_twice, XS),
    "integers": (integers, XS),
    "no_carry": (lambda xs: lax.scan(lambda c, x: (c, jnp.sin(x).sum()), None, xs)[1], XS),
    "no_results": (lambda xs: lax.scan(lambda c, x: (c + x, None), jnp.zeros(3), xs)[0], XS),
    "no_sequences": (lambda h: lax.scan(lambda c, _: (c * 0.9, c.sum()), h, None, length=N), H),
    "no_steps": (lambda h: lax.scan(lambda c, x: (c + x, c * x), h, jnp.zeros((0, 3))), H),
    "one_step": (lambda h: lax.scan(lambda c, x: (c + x, c * x), h, h[None]), H),
    "unrolled_by_2": (lambda w, h, xs: lax.scan(lambda h, x: cell(w, h, x), h, xs, unroll=2), W, H, XS),
    "unrolled": (lambda w, h, xs: lax.scan(lambda h, x: cell(w, h, x), h, xs, unroll=True), W, H, XS),
    "fori": (lambda x: lax.fori_loop(2, 30, lambda i, c: c * 0.9 + i, x), H),
    "fori.long": (lambda x: lax.fori_loop(0, 1000, lambda i, c: 0.99 * c + x * i / 1000, x), H),
    "fori.unrolled": (lambda x: lax.fori_loop(0, 6, lambda i, c: c * 0.9 + i, x, unroll=True), H),
    "fori.index": (lambda w, x: lax.fori_loop(0, N, lambda i, c: c + jnp.sin(w[i]) * i, x), XS, H),
    "fori.downwards": (lambda w, x: lax.fori_loop(0, N, lambda i, c: c * 0.5 + w[N - 1 - i], x), XS, H),
    "fori.rows": (buffer_of_rows, XS),
    "fori.update_slice": (lambda x: lax.fori_loop(0, N, lambda i, t: lax.dynamic_update_slice(t, x[i][None] * 2, (i, 0)), x), XS),
    "fori.triangle": (lambda x: lax.fori_loop(0, N, lambda i, c: lax.fori_loop(0, 5, lambda j, c: c + i * j, c), x), H),
    "map": (lambda xs: lax.map(lambda x: (jnp.tanh(x), x.sum()), xs), XS),
    "map.batches": (lambda xs: lax.map(lambda x: jnp.sin(x).sum(), xs, batch_size=3), draw(4, 20, 3)),
    "map.long": (lambda xs: lax.map(lambda x: jnp.sort(x), xs), TALL),
    "associative_scan": (lambda xs: lax.associative_scan(jnp.multiply, xs), XS),
    "associative_scan.pairs": (lambda a, b: lax.associative_scan(lambda l, r: (l[0] * r[0], l[1] * r[0] + r[1]), (a, b)), XS, XS + 1),
    "attention_by_blocks": (attention_by_blocks, draw(5, 4, 8), draw(6, N, 2, 8), draw(7, N, 2, 3)),
    "ssm": (ssm, H, H + 1, draw(8, 30)),
    "kalman": (kalman, np.float32(0.9), draw(9, 20)),
    "viterbi": (viterbi, W, XS),
    "log_recursion": (ctc_like, W, XS),
    "runge_kutta": (runge_kutta, W, H),
    "checkpoint.inside": (checkpointed_layers, W, H),
    "checkpoint.around": (checkpoint_around, W, H, XS),
    "checkpoint.both": (two_levels_of_checkpoints, W, H, XS),
    "custom_vjp": (custom_gradient, W, H, XS),
    "microbatches": (microbatches, W, draw(10, N, 5, 3)),
    "learned_steps": (learned_steps, W, H),
    "bf16": (lambda w, h, xs: rnn(w.astype(jnp.bfloat16), h.astype(jnp.bfloat16), xs.astype(jnp.bfloat16))[0].astype(jnp.float32) * 0 + 1, W, H, XS),
    "closed_over": (lambda x: lax.scan(lambda c, row: (c + row @ W, None), x, jnp.asarray(XS))[0], H),
    "vmap": (lambda w, h, xs: jax.vmap(rnn, (None, 0, 1))(w, h, xs), W, draw(11, 4, 3), draw(12, N, 4, 3)),
    "vmap.of_sequences": (lambda h, xs: jax.vmap(lambda x: lax.scan(lambda c, e: (c * e, c), h, x))(xs), H, draw(13, 4, N, 3)),
    "keys": (keys, KEY, H),
    "keys.typed": (typed_keys, KEY, H),
    "dropout": (dropout_of_layers, KEY, W, H),
    "complex": (lambda x: jnp.abs(lax.scan(lambda c, e: (c * lax.complex(e, e) + 1, jnp.real(c)), jnp.complex64(1), x)[0]), draw(14, 8)),
    "complex.sequence": (lambda x: jnp.real(lax.scan(lambda c, e: (c + jnp.abs(e), e * 2), jnp.float32(0), jnp.fft.rfft(x))[1]), draw(14, 12)),
    "jit_inside": (lambda w, h, xs: lax.scan(jax.jit(lambda h, x: cell(w, h, x)), h, xs), W, H, XS),
    "stacks_of_carries": (lambda h: lax.scan(lambda c, x: (c + 1, (c, c, x)), h, XS), H),
    "gelu": (lambda w, x: lax.scan(lambda x, w: (jax.nn.gelu(x @ w), jax.nn.silu(x)), x, jnp.stack([w] * N)), W, H),
}  # fmt: skip


def newton(a):
    return lax.while_loop(lambda s: jnp.abs(s[0] * s[0] - a) > 1e-3, lambda s: ((s[0] + a / s[0]) / 2, s[1] + 1), (a, 0))


def bisection(a):
    def step(state):
        low, high = state
        middle = (low + high) / 2
        return jnp.where(middle**3 < a, middle, low), jnp.where(middle**3 < a, high, middle)

    return lax.while_loop(lambda s: s[1] - s[0] > 1e-2, step, (jnp.float32(0), jnp.float32(4)))


def collatz(n):
    return lax.while_loop(lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0))[1]


def power_iteration(w, x):
    def step(state):
        x, _, k = state
        y = w @ x
        y = y / jnp.linalg.norm(y)
        return y, jnp.max(jnp.abs(y - x)), k + 1

    w = w @ w.T + jnp.eye(3)
    return lax.while_loop(lambda s: (s[1] > 1e-2) & (s[2] < 100), step, (x / jnp.linalg.norm(x), jnp.float32(1), 0))[0]


def conjugate_gradient(w, b):
    matrix = w @ w.T + jnp.eye(3)
    return jax.scipy.sparse.linalg.cg(lambda x: matrix @ x, b, maxiter=10)[0]


def greedy_decoding(w, x):
    """Takes tokens until the end token, with a buffer."""

    def step(state):
        tokens, h, k, _ = state
        h = jnp.tanh(h @ w + k)
        token = jnp.argmax(h)
        return tokens.at[k].set(token), h, k + 1, token == 2

    return lax.while_loop(lambda s: (s[2] < 9) & ~s[3], step, (jnp.full(9, -1), x, 0, False))


WHILES = {
    "newton": (newton, np.float32(7)),
    "bisection": (bisection, np.float32(9)),
    "collatz": (collatz, np.int32(27)),
    "dynamic_fori": (lambda n, x: lax.fori_loop(0, n, lambda i, c: c * 0.9 + i, x), np.int32(9), H),
    "dynamic_fori.no_steps": (lambda n, x: (lax.fori_loop(0, n, lambda i, c: c + 1, x), x), np.int32(-3), H),
    "dynamic_fori.lower": (lambda n, x: lax.fori_loop(n, 12, lambda i, c: c + i, x), np.int32(3), H),
    "rows_until": (lambda xs: lax.while_loop(lambda s: (s[0] < N) & (s[1] < 2), lambda s: (s[0] + 1, s[1] + jnp.abs(xs[s[0]]).sum()), (0, 0.0)), XS),
    "power_iteration": (power_iteration, W, H),
    "conjugate_gradient": (conjugate_gradient, W, H),
    "greedy_decoding": (greedy_decoding, W, H),
    "in_scan": (lambda xs: lax.scan(lambda c, x: (lax.while_loop(lambda c: c < 3, lambda c: c + jnp.abs(x[0]) + 0.5, c) - 2, c), jnp.float32(0), xs), XS),
    "in_while": (lambda n: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, lax.while_loop(lambda t: t < s[0] * 3, lambda t: t + 2, s[1])), (0, 0)), np.int32(5)),
    "vmap": (jax.vmap(newton), np.asarray([2, 9, 30, 0.25], np.float32)),
    "vmap.division": (jax.vmap(lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] / (n - c[0])), (0, 1.0))), np.arange(4, dtype=np.int32)),
    "vmap.bounds": (jax.vmap(lambda n, x: lax.fori_loop(0, n, lambda i, c: c * 0.5 + i, x)), np.asarray([0, 3, 6, 1], np.int32), draw(15, 4, 3)),
    "vmap.twice": (jax.vmap(jax.vmap(collatz)), np.asarray([[1, 2, 3], [6, 7, 8]], np.int32)),
    "vmap.shared_test": (lambda xs: jax.vmap(lambda x: lax.while_loop(lambda s: s[0] < XS[0, 0] * 0 + 5, lambda s: (s[0] + 1, s[1] * x), (0.0, x)))(xs), XS),
    "never": (lambda x: lax.while_loop(lambda c: c.sum() < -1e9, lambda c: c + 1, x), H),
    "invariants": (lambda x, n: lax.while_loop(lambda s: s[0] < s[2], lambda s: (s[0] + 1, s[1] + s[2], s[2]), (0, x, n)), H, np.int32(6)),
    "jvp": (lambda n, x: jax.jvp(lambda x: lax.fori_loop(0, n, lambda i, c: jnp.sin(c) + x, x), (x,), (x,)), np.int32(6), H),
    "keys": (lambda key: lax.while_loop(lambda s: s[1] > 0.1, lambda s: (jax.random.split(s[0])[0], jax.random.uniform(s[0])), (key, jnp.float32(1))), KEY),
    "typed_keys": (lambda key: lax.while_loop(lambda s: s[1] > 0.1, lambda s: (jax.random.fold_in(s[0], 1), jax.random.uniform(s[0])), (jax.random.wrap_key_data(key), jnp.float32(1)))[1], KEY),
    "counted": (lambda x: lax.while_loop(lambda s: s[0] < 70, lambda s: (s[0] + 1, s[1] * 0.99), (0, x)), H),
    "counted.few": (lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 0.99), (0, x)), H),
}  # fmt: skip


def tree_of_branches(x, k):
    return lax.cond(x[0] > 0, lambda x: lax.switch(k, [jnp.sin, jnp.cos, lambda x: -x], x), lambda x: lax.cond(k > 1, jnp.tanh, jnp.exp, x), x)


def cond_in_scan(xs):
    return lax.scan(lambda c, x: (lax.cond(x[0] > 0, lambda: c + x, lambda: c * 0.5), c.sum()), jnp.zeros(3), xs)


def scan_in_cond(flag, w, h, xs):
    return lax.cond(flag, lambda: rnn(w, h, xs)[0], lambda: h * 2)


BRANCHES = {
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda x: (x + 1, 2), lambda x: (x * 2, 3), x), H),
    "cond.operands": (lambda p, x, y: lax.cond(p, lambda a, b: a @ b, lambda a, b: a * b[:, 0], x, y), np.bool_(True), H, W),
    "cond.closures": (lambda p, x: lax.cond(p, lambda: x @ W, lambda: jnp.ones(3)), np.bool_(False), H),
    "cond.numbers": (lambda p: lax.cond(p, lambda: 1.5, lambda: -2.0), np.bool_(False)),
    "cond.integer": (lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), np.int32(5), H),
    "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), np.int32(1), H),
    "switch.above": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), np.int32(9), H),
    "switch.below": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos], x), np.int32(-2), H),
    "switch.one": (lambda i, x: lax.switch(i, [jnp.sin], x), np.int32(4), H),
    "nested": (tree_of_branches, H, np.int32(2)),
    "cond_in_scan": (cond_in_scan, XS),
    "scan_in_cond": (scan_in_cond, np.bool_(True), W, H, XS),
    "scan_in_cond.untaken": (scan_in_cond, np.bool_(False), W, H, XS),
    "while_in_cond": (lambda x: lax.cond(x > 3, newton, lambda a: (a, 0), x), np.float32(8)),
    "vmap": (jax.vmap(lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)), XS),
    "vmap.shared": (lambda p, xs: jax.vmap(lambda x: lax.cond(p, jnp.sin, jnp.cos, x))(xs), np.bool_(True), XS),
    "piecewise": (lambda x: jax.vmap(lambda x: jnp.piecewise(x, [x < 0, x > 1], [lambda x: -x, jnp.sqrt, 0.5]))(x), H),
    "guarded_step": (lambda w, g: lax.cond(jnp.isfinite(g).all(), lambda w: w - g, lambda w: w, w), W, W),
    "update_in_scan": (lambda w, gs, ok: lax.scan(lambda w, g: (lax.cond(ok, lambda: w - 0.1 * g, lambda: w), None), w, gs)[0], H, XS, np.bool_(True)),
    "platform": (lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos), H),
    "switch_of_step": (lambda x: lax.fori_loop(0, N, lambda i, x: lax.switch(i % 3, [jnp.sin, jnp.cos, jnp.tanh], x), x), H),
}  # fmt: skip

SORTED = np.sort(draw(20, 30))

#: Functions of JAX that contain loops.
FUNCTIONS = {
    "searchsorted": (lambda a, v: jnp.searchsorted(a, v), SORTED, draw(21, 5)),
    "searchsorted.right": (lambda a, v: jnp.searchsorted(a, v, side="right"), SORTED, SORTED[::3]),
    "searchsorted.unrolled": (lambda a, v: jnp.searchsorted(a, v, method="scan_unrolled"), SORTED, draw(21, 5)),
    "digitize": (lambda a, v: jnp.digitize(v, a), SORTED, draw(21, 5)),
    "interp": (lambda x, a: jnp.interp(x, a, a * 2), draw(22, 6), SORTED),
    "histogram": (lambda x: jnp.histogram(x, bins=6, range=(-2, 2)), draw(23, 40)),
    "choice": (lambda k, p: jax.random.choice(k, 5, (4,), p=p), KEY, np.full(5, 0.2, np.float32)),
    "permutation": (lambda k: jax.random.permutation(k, 20), KEY),
    "gamma": (lambda k: jax.random.gamma(k, 2.0, (5,)), KEY),
    "gamma.small": (lambda k: jax.random.gamma(k, 0.4, (5,)), KEY),
    "beta": (lambda k: jax.random.beta(k, 2.0, 3.0, (4,)), KEY),
    "dirichlet": (lambda k: jax.random.dirichlet(k, jnp.ones(3), (2,)), KEY),
    "t": (lambda k: jax.random.t(k, 5.0, (4,)), KEY),
    "chisquare": (lambda k: jax.random.chisquare(k, 3.0, (4,)), KEY),
    "poisson": (lambda k: jax.random.poisson(k, 3.0, (6,)), KEY),
    "poisson.large": (lambda k: jax.random.poisson(k, 30.0, (6,)), KEY),
    "binomial": (lambda k: jax.random.binomial(k, 10.0, 0.3, (5,)), KEY),
    "geometric": (lambda k: jax.random.geometric(k, 0.3, (5,)), KEY),
    "rayleigh": (lambda k: jax.random.rayleigh(k, 1.0, (5,)), KEY),
    "truncated_normal": (lambda k: jax.random.truncated_normal(k, -1.0, 1.0, (5,)), KEY),
    "categorical": (lambda k, x: jax.random.categorical(k, x, shape=(6,)), KEY, H),
    "ball": (lambda k: jax.random.ball(k, 3, shape=(2,)), KEY),
    "randint": (lambda k: jax.random.randint(k, (5,), 0, 9), KEY),
    "igamma": (lambda x: jax.scipy.special.gammainc(2.0, jnp.abs(x)), H),
    "betainc": (lambda x: jax.scipy.special.betainc(2.0, 3.0, jax.nn.sigmoid(x)), H),
    "expi": (lambda x: jax.scipy.special.expi(jnp.abs(x) + 0.1), H),
    "bessel_jn": (lambda x: jax.scipy.special.bessel_jn(jnp.abs(x) + 0.5, v=3, n_iter=30), H),
    "hyp1f1": (lambda x: jax.scipy.special.hyp1f1(0.5, 1.5, x), H),
    "hyp2f1": (lambda x: jax.scipy.special.hyp2f1(0.5, 1.5, 2.5, jax.nn.sigmoid(x) * 0.5), H),
    "matrix_power": (lambda w: jnp.linalg.matrix_power(w, 5), W),
    "polyval": (lambda w, x: jnp.polyval(w, x), draw(24, 40), H / 4),
    "polyval.short": (lambda w, x: jnp.polyval(w, x, unroll=2), draw(24, 10), H / 4),
    "median": (lambda x: jnp.median(x, 0), XS),
    "percentile": (lambda x: jnp.percentile(x, 30.0, 0), XS),
    "unique": (lambda x: jnp.unique(x, size=5), np.asarray([3, 1, 3, 2], np.int32)),
    "nonzero": (lambda x: jnp.nonzero(x > 0, size=6), XS),
    "cumsum": (lambda x: jnp.cumsum(x, 0), XS),
    "convolve": (lambda x, y: jnp.convolve(x, y), draw(25, 9), H),
    "trapezoid": (lambda x: jnp.trapezoid(x), draw(25, 9)),
    "vectorize": (lambda x: jnp.vectorize(lambda x: jnp.sum(x), signature="(n)->()")(x), XS),
    "cg": (conjugate_gradient, W, H),
    "bicgstab": (lambda w, b: jax.scipy.sparse.linalg.bicgstab(lambda x: x + w @ x * 0.1, b, maxiter=5)[0], W, H),
    "odeint": (lambda w, x: odeint(lambda y, t: jnp.tanh(w @ y) - y, x, jnp.asarray([0.0, 0.1, 0.3]), rtol=1e-3, atol=1e-3), W, H),
    "threefry_fold": (lambda k: lax.fori_loop(0, 6, lambda i, k: jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(k), i)), k), KEY),
}  # fmt: skip


def train(w, xs):
    """Steps of Adam."""

    def step(state, x):
        w, m, v, k = state
        value, g = jax.value_and_grad(lambda w: jnp.mean((x @ w - 1) ** 2))(w)
        m, v, k = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g, k + 1
        return (w - 0.1 * (m / (1 - 0.9**k)) / (jnp.sqrt(v / (1 - 0.99**k)) + 1e-6), m, v, k), value

    return lax.scan(step, (w, jnp.zeros_like(w), jnp.zeros_like(w), 0), xs)


def square_root(a):
    def solve(f, x):
        return lax.fori_loop(0, 8, lambda _, x: x - f(x) / (2 * x), x)

    return lax.custom_root(lambda x: x * x - a, jnp.ones_like(a), solve, lambda g, y: y / g(jnp.float32(1)))


def beams(xs):
    def step(state, x):
        scores, which = lax.top_k((state[0][:, None] + jax.nn.log_softmax(x)).reshape(-1), 3)
        return (scores, which // 3), which % 3

    return lax.scan(step, (jnp.zeros(3), jnp.zeros(3, jnp.int32)), xs)


def life(cells):
    def step(_, cells):
        around = sum(jnp.roll(cells, (i, j), (0, 1)).astype(jnp.int32) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        return (around == 3) | (cells & (around == 2))

    return lax.fori_loop(0, 9, step, cells)


def rows_of_whiles(xs):
    def row(x):
        return lax.scan(lambda c, _: (lax.while_loop(lambda v: v < 2, lambda v: v + jnp.abs(x[0]) + 0.1, c) - 1, c), x[1], None, length=6)

    return jax.vmap(row)(xs)


def branch_in_while(x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, lax.cond(c[1].sum() > 0, jnp.sin, jnp.cos, c[1])), (0, x))[1]


def cells_with_branches(w, xs):
    return lax.scan(lambda h, x: (lax.cond(x[0] > 0, lambda: jnp.tanh(h @ w), lambda: jnp.sin(h) + x), None), H, xs)[0]


OTHERS = {
    "hessian": (jax.hessian(lambda h: rnn(W, h, XS)[1].sum()), H),
    "jacfwd": (jax.jacfwd(lambda h: rnn(W, h, XS)[0]), H),
    "jacrev": (jax.jacrev(lambda h: rnn(W, h, XS)[0]), H),
    "linearize": (lambda h: jax.linearize(lambda h: rnn(W, h, XS), h)[1](h), H),
    "train": (train, W, draw(30, N, 5, 3)),
    "custom_root": (square_root, np.float32(3)),
    "beams": (beams, XS),
    "life": (life, draw(31, 6, 6) > 0),
    "gcd": (jnp.gcd, np.asarray([36, 7], np.int32), np.asarray([60, 21], np.int32)),
    "rows_of_whiles": (rows_of_whiles, XS),
    "vmap.branch_in_while": (jax.vmap(branch_in_while), XS),
    "cells_with_branches": (cells_with_branches, W, XS),
    "cond.keys": (lambda k, p: jax.random.key_data(lax.cond(p, lambda k: jax.random.fold_in(k, 1), lambda k: k, jax.random.wrap_key_data(k))), KEY, np.bool_(True)),
    "cond.same": (lambda p, x: lax.cond(p, lambda x: x, lambda x: x, x), np.bool_(True), H),
    "cond.pytrees": (lambda p, d: lax.cond(p, lambda d: {"a": d["b"], "b": d["a"]}, lambda d: d, d), np.bool_(True), {"a": H, "b": H + 1}),
    "keys.sequence": (lambda k: lax.scan(lambda c, k: (c + jax.random.uniform(k), None), 0.0, jax.random.split(jax.random.wrap_key_data(k), N))[0], KEY),
    "keys.results": (lambda k: jax.random.key_data(lax.scan(lambda k, _: (jax.random.fold_in(k, 1), k), jax.random.wrap_key_data(k), None, length=N)[1]), KEY),
    "u8": (lambda x: lax.scan(lambda c, e: (c + e, c), jnp.uint8(250), x), np.arange(8, dtype=np.uint8)),
    "u32.counter": (lambda x: lax.fori_loop(jnp.uint32(0), jnp.uint32(N), lambda i, c: c + i, x), np.uint32(3)),
    "overflow": (lambda x: lax.scan(lambda c, _: (c + 2**30, c), jnp.int32(5), None, length=9)[1] + x, np.int32(1)),
    "bools": (lambda b: lax.scan(lambda c, x: (c ^ x, c & x), jnp.bool_(True), b), draw(32, 9) > 0),
    "swap": (lambda a, b: lax.fori_loop(0, N, lambda i, c: (c[1], c[0]), (a, b)), H, H + 1),
    "carry_of_sequence": (lambda x: lax.scan(lambda c, x: (x, c), jnp.float32(0), x), draw(33, 9)),
    "carry_of_number": (lambda x: lax.scan(lambda c, x: (jnp.float32(3), c + x), jnp.float32(0), x), draw(34, 9)),
    "sort": (lambda xs: lax.scan(lambda c, x: (jnp.sort(c + x), jnp.argsort(x)), jnp.zeros(3), xs), XS),
    "convolve": (lambda x: lax.fori_loop(0, N, lambda i, c: jnp.tanh(jnp.convolve(c, H, mode="same")), x), draw(35, 9)),
}  # fmt: skip
