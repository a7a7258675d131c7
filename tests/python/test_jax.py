# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Plans with JAX's arrays on the host."""

import numpy
import pytest
from support import Csr, assert_close, numbers

import tessera

jax = pytest.importorskip("jax")
if tessera.build()["device"] != "host":
    pytest.skip("a build for a device takes arrays of PyTorch and CuPy", allow_module_level=True)


def test_products():
    A = Csr(37, 50, 0.1, "float32")
    with jax.default_device(jax.devices("cpu")[0]):
        arrays = [jax.numpy.asarray(array) for array in A.arrays[:3]]
        plan = tessera.SpmmPlan(*arrays, A.shape)
        B = jax.numpy.asarray(numbers((50, 6), "float32"))
    result = plan.apply(B)
    assert isinstance(result, numpy.ndarray)
    wide = numpy.asarray(B).astype("float64")
    assert_close(result, A.exact() @ wide, abs(A.exact()) @ abs(wide), 50, "float32")
    # JAX' arrays never change.
    with pytest.raises(tessera.InvalidArgument, match="read-only"):
        plan.apply(B, out=jax.numpy.asarray(result))
