"""What Library says about matmuls that cuBLASLt refuses. CMake names an emulated CUDA driver and cuBLASLt, which compute on the CPU."""
import warnings

import numpy as np
import pytest

import scalide

PROGRAM = "program k(x: f32[m, 64], w: f32[64, 32]) -> (y: f32[m, 32]) {\n  y = dot_general(x, w) {contract: [[1], [0]]}\n}\n"
REFUSED = r"cuBLASLt refuses the matmul of y \(k.scl:2\): matmul.m: must be a multiple of 16 for f8 operands, got 7"


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    source = tmp_path_factory.mktemp("cuda") / "k.scl"
    source.write_text(PROGRAM)
    return lambda **options: scalide.build(source, target="cuda", numerics="f8_master", **options)


def arrays(rows):
    random = np.random.default_rng(rows)
    return random.standard_normal((rows, 64)).astype(np.float32), random.standard_normal((64, 32)).astype(np.float32)


def test_a_refused_matmul_is_a_warning(build):
    x, w = arrays(7)
    with pytest.warns(RuntimeWarning, match=REFUSED) as seen:
        y = build()(x, w)
    assert len(seen) == 1 and "It multiplies bf16 operands instead, which is slower." in str(seen[0].message)
    np.testing.assert_allclose(y, x @ w, atol=0.07 * np.abs(x @ w).max())  # two operands of e4m3: 2**-4 of each product


def test_a_matmul_of_cublaslt_is_no_warning(build):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build()(*arrays(16))


def test_required_libraries_make_it_an_error(build):
    with pytest.raises(RuntimeError, match=REFUSED):
        build(require_libraries=True)(*arrays(7))
