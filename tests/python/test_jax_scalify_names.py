"""Compares the exports of jax_scalify with scalide.jax: names, the functions scaled_*, registered primitives, HLO text, e8m0."""
import importlib
import pathlib
import re

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.extend.core import Primitive
from test_library import error_of

import scalide.jax as jsa

PAGE = pathlib.Path(__file__).parents[2] / "docs/reference/python/scalify.md"
#: The public names of each __init__.py of jax_scalify at f9aa9af, its imports of other packages left out.
NAMES = {
    "": "Pow2RoundMode ScaledArray ScalifyConfig __version__ as_scaled_array asarray core debug_callback lax ops scaled_array scalify tree utils",
    "core": """Array ArrayTypes DTypeLike Pow2RoundMode ScaledArray ScaledPrimitiveType ScalifyConfig Shape Sharding as_scaled_array asarray
        debug_callback find_registered_scaled_op get_numpy_api get_scale_dtype get_scalify_config is_scaled_leaf is_static_anyscale
        is_static_one_scalar is_static_zero make_scaled_scalar pow2_decompose pow2_round pow2_round_down pow2_round_up register_scaled_lax_op
        register_scaled_op safe_div safe_reciprocal scaled_array scalify""",
    "lax": """check_scalar_scales get_data_scale get_data_scale_p promote_scale_types promote_types rebalance scaled_abs scaled_add scaled_add_sub
        scaled_argmax scaled_argmin scaled_boolean_binary_op scaled_broadcast_in_dim scaled_concatenate scaled_conv_general_dilated
        scaled_convert_element_type scaled_cos scaled_div scaled_dot_general scaled_eq scaled_exp scaled_ge scaled_gt scaled_integer_pow
        scaled_is_finite scaled_le scaled_log scaled_lt scaled_max scaled_min scaled_minmax scaled_mul scaled_ne scaled_neg
        scaled_op_default_translation scaled_pad scaled_reduce_max scaled_reduce_min scaled_reduce_precision scaled_reduce_prod
        scaled_reduce_sum scaled_reduce_window_max scaled_reduce_window_min scaled_reduce_window_sum scaled_reshape scaled_rev scaled_select_n
        scaled_sign scaled_sin scaled_slice scaled_sqrt scaled_stop_gradient scaled_sub scaled_transpose set_scaling set_scaling_p stop_scaling
        stop_scaling_p""",
    "ops": """cast_on_backward cast_on_forward debug_callback debug_callback_grad debug_print debug_print_grad dynamic_rescale_l1
        dynamic_rescale_l1_grad dynamic_rescale_l2 dynamic_rescale_l2_grad dynamic_rescale_max dynamic_rescale_max_grad
        reduce_precision_on_backward reduce_precision_on_forward""",
    "quantization": "as_e8m0",
    "tree": "all astype flatten leaves map structure unflatten",
    "utils": "parse_hlo_module print_hlo_module",
}


@pytest.mark.parametrize("module", NAMES)
def test_name_is_offered_or_documented(module):
    ours = importlib.import_module(".".join(filter(None, ["scalide.jax", module])))
    not_offered = re.search(r"^(#+ )?Not offered.*?(?=^#|\Z)", PAGE.read_text(), re.S | re.M)[0]
    for name in NAMES[module].split():
        if hasattr(ours, name):
            assert callable(getattr(ours, name)) is False or getattr(ours, name).__doc__, f"{module}.{name} has no docstring"
            continue
        assert name in not_offered, f"{module}.{name}"
        assert "is not supported, because the rules of Scalide are YAML files. Use " in error_of(getattr, ours, name)


def scaled(data, scale, dtype=np.float16):
    return jsa.ScaledArray(np.asarray(data, dtype), np.float32(scale))


X, Y, M = scaled([1, -2, 3], 2), scaled([4, 5, -6], 0.5), scaled([[1, 2], [3, 4]], 4)
WINDOW = ((2,), (1,), ((0, 0),), (1,), (1,))
#: The arguments of each call, as jax_scalify's rules take them: arrays, then the parameters of the primitive.
CALLS = {
    **{name: (X, Y) for name in "add sub mul div max min eq ne lt le gt ge".split()},
    **{name: (X,) for name in "abs neg sign is_finite exp sin cos stop_gradient".split()},
    **{name: (scaled([1, 4, 9], 4),) for name in "log sqrt".split()},
    "argmax": (M, (1,), np.int32), "argmin": (M, (0,), np.int32), "broadcast_in_dim": (X, (2, 3), (1,)), "concatenate": ([X, Y], 0),
    "convert_element_type": (X, np.float32), "dot_general": (M, M, (((1,), (0,)), ((), ()))), "integer_pow": (X, 3),
    "pad": (X, 0.0, [(1, 2, 0)]), "reduce_max": (M, (0,)), "reduce_min": (M, (1,)), "reduce_prod": (M, (1,)), "reduce_sum": (M, (0, 1)),
    "reduce_precision": (X, 5, 2), "reduce_window_max": (X, *WINDOW), "reduce_window_min": (X, *WINDOW), "reduce_window_sum": (X, *WINDOW),
    "reshape": (M, (4,), None), "rev": (X, (0,)), "select_n": (np.array([True, False, True]), X, Y), "slice": (X, (1,), (3,), None),
    "transpose": (M, (1, 0)),
    "conv_general_dilated": (scaled(np.arange(5).reshape(1, 1, 5), 2), scaled([[[1, 2]]], 4)),
}  # fmt: skip
PARAMETERS = {"conv_general_dilated": {"window_strides": (1,), "padding": [(0, 0)], "dimension_numbers": ("NCH", "OIH", "NCH")}}


def values(tree):
    """In f32, and what does not depend on the scales as it is."""
    return jax.tree_util.tree_map(lambda leaf: leaf.to_array(np.float32) if isinstance(leaf, jsa.ScaledArray) else leaf, tree,
                                  is_leaf=lambda leaf: isinstance(leaf, jsa.ScaledArray))  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_scaled_function(name):
    """Beside LAX on the values."""
    from scalide.jax.scaled_ops import FUNCTIONS

    fn, params = getattr(jsa.lax, f"scaled_{name}"), PARAMETERS.get(name, {})
    result, expected = fn(*CALLS[name], **params), FUNCTIONS[name](*values(list(CALLS[name])), **params)
    assert isinstance(result, jsa.ScaledArray) == (expected.dtype == np.float32)
    assert result.dtype == (np.float16 if isinstance(result, jsa.ScaledArray) and name != "convert_element_type" else expected.dtype)
    np.testing.assert_allclose(values(result), expected, rtol=2e-3, atol=2e-3)


def test_every_scaled_function_is_called():
    from scalide.jax.scaled_ops import FUNCTIONS

    assert set(CALLS) == set(FUNCTIONS) == {name[7:] for name in NAMES["lax"].split() if name.startswith("scaled_")} - {
        name[7:] for name in jsa.lax.NOT_OFFERED}  # fmt: skip
    assert error_of(getattr, jsa.lax, "scaled_magic") == "AttributeError: module 'scalide.jax.lax' has no attribute 'scaled_magic'"


def primitive(name):
    made = Primitive(name)
    made.def_abstract_eval(lambda x, **_: x)
    return made


def test_registered_primitives():
    """Data and scales are kept as the function made them, beyond what the data's format could hold too."""
    times = primitive("times_in_scale")
    jsa.core.register_scaled_op(times, lambda x, by: jsa.ScaledArray(x.data, x.scale * by))
    run = jsa.scalify(lambda x: 2 * times.bind(x, by=4))
    for scale in (2, 2.0**20, 0):
        result = run(scaled([1, 2], scale))
        assert result.scale == 8 * scale
        np.testing.assert_array_equal(values(result), np.float32([8, 16]) * scale)
    assert jsa.core.find_registered_scaled_op(times)[1] == jsa.core.ScaledPrimitiveType.FORWARD
    assert jsa.core.find_registered_scaled_op(primitive("unheard_of")) == (None, jsa.core.ScaledPrimitiveType.NEVER)
    assert jsa.core.find_registered_scaled_op(jax.lax.mul_p)[0] is jsa.lax.scaled_mul
    assert "times_in_scale already has a scaled function" in error_of(jsa.core.register_scaled_op, times, lambda x, by: x)
    assert "mul already has a scaled function" in error_of(jsa.core.register_scaled_op, jax.lax.mul_p, lambda x, y: x)
    without_rule = error_of(jsa.scalify(lambda x, y: times.bind(x, by=4) + y), np.ones(2, np.float16), scaled([1, 2], 1))
    assert "JAX primitive 'times_in_scale' is not supported" in without_rule and "add_rule('times_in_scale')" in without_rule


def test_registered_always():
    """As set_scaling is: called on plain arrays too, and may make scaled ones of them."""
    start = primitive("start_scaled")
    jsa.core.register_scaled_op(start, lambda x: jsa.ScaledArray(x / 4, np.float32(4)), jsa.core.ScaledPrimitiveType.ALWAYS_SCALE)
    result = jsa.scalify(lambda x, y: start.bind(x) * y)(np.array([4, 8], np.float16), scaled([1, 2], 2))
    assert result.scale == 8
    np.testing.assert_array_equal(result.data, [1, 4])


def test_registered_by_name():
    @jsa.core.register_scaled_lax_op
    def scaled_cbrt(x):
        return jsa.ScaledArray(jax.lax.cbrt(x.data), jax.lax.cbrt(x.scale))

    result = jsa.scalify(jax.lax.cbrt)(scaled([8, 27], 64))
    assert result.scale == 4
    np.testing.assert_allclose(values(result), [8, 12], rtol=1e-3)

    def scaled_magic(x):
        return x

    assert "there is no jax.lax.magic_p" in error_of(jsa.core.register_scaled_lax_op, scaled_magic)


def test_scale_dtypes_are_promoted():
    a, b = jsa.ScaledArray(np.ones(2, np.float16), np.float16(2)), scaled([1, 2], 4)
    assert [made.scale.dtype for made in jsa.lax.promote_scale_types(a, b)] == [np.float32] * 2
    assert jsa.lax.promote_types(np.float16, np.float32, np.float16) == np.float32
    jsa.lax.check_scalar_scales(a, b)


def test_functions_in_one_direction():
    x = jnp.float32([1, 2])
    np.testing.assert_array_equal(jsa.ops.map_on_forward(jnp.sin, x), jnp.sin(x))
    np.testing.assert_array_equal(jax.grad(lambda v: jnp.sum(jsa.ops.map_on_forward(jnp.sin, v) * 3))(x), [3, 3])
    np.testing.assert_array_equal(jax.grad(lambda v: jnp.sum(jsa.ops.map_on_backward(lambda ct: 2 * ct, v) * 3))(x), [6, 6])


def test_hlo_text(capsys):
    lowered = jax.jit(lambda a, b: jax.lax.dot(a, b.T)).lower(np.ones((16, 48), np.float16), np.ones((32, 48), np.float16))
    lines = jsa.utils.parse_hlo_module(lowered)
    assert any("parameter(0)" in line.cmd and line.indent == 1 for line in lines) and any(line.metadata for line in lines)
    assert lines == jsa.utils.parse_hlo_module(lowered.compile())
    jsa.utils.print_hlo_module(lowered, metadata=True)
    assert "metadata={op_name=" in capsys.readouterr().out
    info = jsa.utils.HloOperationInfo("%y = f8e4m3fn[] custom-call(%x)", 1, None, {"scale": 2})
    assert info.as_text(backend_cfg=True) == '  %y = f8e4m3fn[] custom-call(%x)\n    backend_cfg: {\n      "scale": 2\n    }'
    assert "parse_hlo_module: module must be a result of" in error_of(jsa.utils.parse_hlo_module, "text")


@pytest.mark.parametrize("api", [np, jnp])
def test_exponents_of_8_bits(api):
    from scalide.jax.quantization import as_e8m0, from_e8m0, pow2_truncate

    x = api.asarray(np.array([1, 3, -448, 0.75, 0, 1e-39, np.inf, np.nan], np.float32))
    np.testing.assert_array_equal(pow2_truncate(x), np.array([1, 2, -256, 0.5, 0, 0, np.inf, np.nan], np.float32))
    for dtype in (np.float32, ml_dtypes.bfloat16):
        codes = as_e8m0(x.astype(dtype))
        assert codes.dtype == np.uint8
        np.testing.assert_array_equal(codes, [127, 128, 0, 126, 0, 0, 255, 255])
        back = from_e8m0(api.asarray(np.array([0, 1, 127, 254, 255], np.uint8)), dtype)
        assert back.dtype == dtype
        np.testing.assert_array_equal(np.asarray(back, np.float32), np.float32([2**-127, 2**-126, 1, 2.0**127, np.nan]))
    assert "must be f32 or bf16" in error_of(as_e8m0, x.astype(np.float16)) and "must be u8" in error_of(from_e8m0, x, np.float32)
