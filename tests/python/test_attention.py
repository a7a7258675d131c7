# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""AttentionPlan and row_softmax against NumPy in float64."""

import numpy
import pytest
from support import DTYPES, SHAPES, Csr, numbers

import tessera

ALGORITHMS = ["fused", "chain"]


class Reference:
    """Scores, weights, output and gradients of one head with dense arrays in float64, and how far off results may be.

    With u of the sums (2^-53 in float64, else 2^-24): a score errs by (d + 4) u of the sizes that it is a sum of
    (support.bound; the scale is two roundings more), and by u of its distance from the row's largest. An error of a
    score is a relative one of its weight, and of the sum of weights, which has n terms and exponentials of at most 8 u.
    Twice everything for the products of such errors and the reference's own.
    """

    def __init__(self, A, q, k, v, scale, values="none"):
        self.q, self.k, self.v = (a.astype("float64") for a in (q, k, v))
        self.name, self.scale, self.values = str(A.data.dtype), scale, values
        self.u = u = 2.0**-53 if self.name == "float64" else 2.0**-24
        rows = numpy.repeat(numpy.arange(A.shape[0]), numpy.diff(A.indptr))
        self.at = rows, A.indices
        self.entry = numpy.zeros(A.shape, bool)
        self.entry[self.at] = True
        self.numbers = numpy.zeros(A.shape)
        self.numbers[self.at] = A.data.astype("float64")
        self.products = self.q @ self.k.T
        s, sizes = scale * self.products, abs(scale) * (abs(self.q) @ abs(self.k.T))
        if values == "bias":
            s, sizes = s + self.numbers, sizes + numpy.where(numpy.isinf(self.numbers), 0, abs(self.numbers))
        elif values == "scale":
            s, sizes = s * self.numbers, sizes * abs(self.numbers)
        s = numpy.where(self.entry, s, -numpy.inf)
        top = s.max(1, initial=-numpy.inf, keepdims=True)
        top = numpy.where(numpy.isfinite(top), top, 0)
        weights = numpy.exp(s - top)
        total = weights.sum(1, keepdims=True)
        self.p = weights / numpy.where(total > 0, total, 1)
        with numpy.errstate(divide="ignore"):
            self.lse = (numpy.log(total) + top)[:, 0]
        self.out = self.p @ self.v
        n = self.entry.sum(1, keepdims=True)
        far = numpy.where(numpy.isfinite(s), top - s, 0)
        score = numpy.where(numpy.isfinite(s), (self.q.shape[1] + 4) * u * sizes + u * far, 0)
        self.score_error = score.max(1, initial=0, keepdims=True)
        self.lse_error = 2 * (self.score_error + (n + 12) * u + u * abs(top))[:, 0]
        self.error = 2 * (2 * self.score_error + (2 * n + 16) * u) * (self.p @ abs(self.v)) + self.stored(self.out)

    def stored(self, exact):
        """A result of 16 bits is rounded once more; one below the normal numbers by half of the smallest one."""
        return 2 * 2.0**-11 * abs(exact) + 2.0**-24 if self.name == "float16" else 2.0**-1000

    def gradients(self, g):
        """(exact, error) of the gradients by q, k, v and values where that by out is g."""
        g, u, (n, m), e = g.astype("float64"), self.u, self.p.shape, self.v.shape[1]
        delta = (g * self.out).sum(1, keepdims=True)
        d_p = g @ self.v.T
        d_s = self.p * (d_p - delta)
        # Weights anew from the log-sum-exp; two inner products of e terms, one with an output that errs.
        weight_error = 2 * self.score_error + self.lse_error[:, None] + 16 * u
        inner = abs(g) @ abs(self.v.T) + (abs(g) * abs(self.out)).sum(1, keepdims=True)
        off = self.p * (weight_error * inner + (e + 4) * u * inner + (abs(g) * self.error).sum(1, keepdims=True))
        by_score = self.scale * (d_s * self.numbers if self.values == "scale" else d_s)
        factor = abs(self.scale) * (abs(self.numbers) if self.values == "scale" else 1)
        off_score = factor * off + 4 * u * abs(by_score)
        result = {}

        def add(name, exact, error, terms, sizes):
            result[name] = exact, 2 * (error + (terms + 4) * u * sizes) + self.stored(exact)

        add("q", by_score @ self.k, off_score @ abs(self.k), m, abs(by_score) @ abs(self.k))
        add("k", by_score.T @ self.q, off_score.T @ abs(self.q), n, abs(by_score.T) @ abs(self.q))
        add("v", self.p.T @ g, (weight_error * self.p).T @ abs(g), n, self.p.T @ abs(g))
        # By a scale, once more times scale <q, k>, which errs by (d + 4) u of its sizes.
        turn = self.scale * self.products if self.values == "scale" else numpy.ones(self.p.shape)
        sizes = abs(self.scale) * (abs(self.q) @ abs(self.k.T)) if self.values == "scale" else turn
        add("values", (d_s * turn)[self.at], (off * sizes)[self.at], self.q.shape[1] + 4, (abs(d_s) * sizes)[self.at])
        return result


def check(result, exact, error):
    assert result.shape == exact.shape
    same = result.astype("float64") == exact  # infinite ones
    with numpy.errstate(invalid="ignore"):
        assert numpy.all(same | (abs(result.astype("float64") - exact) <= error))


def unique(A):
    """Csr of SciPy has no entry twice, which Reference counts on."""
    assert len(set(zip(numpy.repeat(numpy.arange(A.shape[0]), numpy.diff(A.indptr)), A.indices))) == A.data.size
    return A


@pytest.mark.parametrize("values", ["none", "bias", "scale"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_numpy(shape, algorithm, dtype, values):
    A = unique(Csr(*shape, dtype))
    rows, cols = A.shape
    plan = tessera.AttentionPlan(*A.arrays, algorithm=algorithm, values=values, prepare_backward=True)
    for d, e in ((16, 16), (1, 3), (37, 8), (64, 130)):
        q, k, v = numbers((rows, d), dtype, 2), numbers((cols, d), dtype, 3), numbers((cols, e), dtype, 4)
        exact = Reference(A, q, k, v, 1.5, values)
        out, lse = plan.apply(q, k, v, scale=1.5, lse=True)
        assert isinstance(out, numpy.ndarray) and out.dtype == dtype
        assert lse.dtype == ("float64" if dtype == "float64" else "float32")
        check(out, exact.out, exact.error)
        check(lse, exact.lse, exact.lse_error)
        g = numbers((rows, e), dtype, 5)
        results = plan.backward(g, q, k, v, out, lse, scale=1.5, grad_values=values != "none")
        assert len(results) == (3 if values == "none" else 4)
        for name, result in zip(("q", "k", "v", "values"), results):
            assert result.dtype == dtype
            check(result, *exact.gradients(g)[name])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_means_of_whole_numbers_are_exact(dtype, algorithm):
    """Queries of zero weigh alike: four entries per row make means of four whole numbers."""
    rows = 20
    indptr = numpy.arange(0, 4 * rows + 1, 4, dtype="int32")
    indices = numpy.array([(i + s) % rows for i in range(rows) for s in (0, 1, 2, 5)], "int32")
    plan = tessera.AttentionPlan(indptr, indices, numpy.zeros(4 * rows, dtype), (rows, rows), algorithm=algorithm,
                                 prepare_backward=True)
    v = numpy.random.default_rng(1).integers(-50, 50, (rows, 9)).astype(dtype)
    q = numpy.zeros((rows, 5), dtype)
    out, lse = plan.apply(q, numbers((rows, 5), dtype), v, lse=True)
    u = 2.0**-53 if dtype == "float64" else 2.0**-24
    exact = v[indices].reshape(rows, 4, 9).astype("float64").sum(1) / 4
    if algorithm == "fused":
        assert numpy.array_equal(out, exact)
    else:
        # Its weights are e^-log 4: log 4 is rounded, by 2 u, and an exponential errs by 8 u.
        check(out, exact, 24 * u * 50 + (2.0**-11 * abs(exact) if dtype == "float16" else 0))
    g = numpy.random.default_rng(2).integers(-50, 50, (rows, 9)).astype(dtype)
    d_v = plan.backward(g, q, numbers((rows, 5), dtype), v, out, lse)[2]
    exact = numpy.zeros((rows, 9))
    numpy.add.at(exact, indices, numpy.repeat(g, 4, 0) / 4)
    check(d_v, exact, 24 * u * 4 * 50 + (2.0**-11 * abs(exact) if dtype == "float16" else 0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_heads_in_any_layout(dtype):
    A = Csr(37, 50, 0.1, dtype)
    plan = tessera.AttentionPlan(*A.arrays, values="bias", prepare_backward=True)
    # (row, head, feature), as layers of networks have them, and heads first.
    q, k, v, g = (numbers((n, 3, d), dtype, s).transpose(1, 0, 2)
                  for n, d, s in ((37, 8, 2), (50, 8, 3), (50, 12, 4), (37, 12, 5)))
    out = numpy.full((37, 3, 12), numpy.nan, dtype).transpose(1, 0, 2)
    lse = numpy.full((3, 37), numpy.nan, "float64" if dtype == "float64" else "float32")
    given = plan.apply(q, k, v, out=out, lse=lse)
    assert given[0] is out and given[1] is lse
    assert numpy.array_equal(plan.apply(q, k, v), out)
    into = tuple(numpy.full_like(a, numpy.nan) for a in (q, k, v)) + (numpy.full((3, A.data.size), numpy.nan, dtype),)
    assert plan.backward(g, q, k, v, out, lse, grad_values=True, into=into)[0] is into[0]
    for h in range(3):
        exact = Reference(A, q[h], k[h], v[h], 1 / numpy.sqrt(8), "bias")
        check(out[h], exact.out, exact.error)
        check(lse[h], exact.lse, exact.lse_error)
        for name, result in zip(("q", "k", "v", "values"), into):
            check(result[h], *exact.gradients(g[h])[name])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_gradients_are_differences(algorithm):
    """Independent of the formulas: along a direction, central differences of a loss."""
    A = Csr(30, 40, 0.2, "float64")
    plan = tessera.AttentionPlan(*A.arrays, values="scale", prepare_backward=True, algorithm=algorithm)
    q, k, v, g = numbers((30, 8), "float64"), numbers((40, 8), "float64"), numbers((40, 6), "float64"), \
        numbers((30, 6), "float64")
    along = [numbers(a.shape, "float64", 7 + i) for i, a in enumerate((q, k, v, A.data))]
    start = A.data

    def loss(step):
        plan.update_values(start + step * along[3])
        return float((plan.apply(*(a + step * b for a, b in zip((q, k, v), along))) * g).sum())

    step = 1e-5
    difference = (loss(step) - loss(-step)) / (2 * step)
    plan.update_values(start)
    out, lse = plan.apply(q, k, v, lse=True)
    gradient = sum(float((a * b).sum()) for a, b in zip(plan.backward(g, q, k, v, out, lse, grad_values=True), along))
    # Losses of about 30 numbers below 10 round by 1e-13, which the step makes 1e-8; its square is 1e-10.
    assert abs(gradient) > 0.1 and abs(difference - gradient) < 1e-6


def test_hidden_entries_and_rows():
    A = Csr(37, 50, 0.2, "float64")
    A.data[::3] = -numpy.inf
    A.data[A.indptr[5]:A.indptr[6]] = -numpy.inf  # a whole row
    A.data[1] = 0.0
    plan = tessera.AttentionPlan(*A.arrays, values="bias", prepare_backward=True)
    q, k, v, g = (numbers((n, 8), "float64", s) for n, s in ((37, 2), (50, 3), (50, 4), (37, 5)))
    exact = Reference(A, q, k, v, 1.0, "bias")
    out, lse = plan.apply(q, k, v, scale=1.0, lse=True)
    check(out, exact.out, exact.error)
    check(lse, exact.lse, exact.lse_error)
    assert numpy.all(out[5] == 0) and lse[5] == -numpy.inf
    d_values = plan.backward(g, q, k, v, out, lse, scale=1.0, grad_values=True)[3]
    assert numpy.all(d_values[numpy.isinf(A.data)] == 0)
    check(d_values, *exact.gradients(g)["values"])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_scores_of_any_size_and_nan(algorithm):
    A = Csr(37, 50, 0.2, "float32")
    plan = tessera.AttentionPlan(*A.arrays, algorithm=algorithm)
    q, k, v = numbers((37, 8), "float32"), numbers((50, 8), "float32", 3), numbers((50, 8), "float32", 4)
    exact = Reference(A, q, k, v, 1e4)
    check(plan.apply(q, k, v, scale=1e4), exact.out, exact.error)
    q[7] = numpy.nan
    out = plan.apply(q, k, v)
    assert A.indptr[8] > A.indptr[7] and numpy.all(numpy.isnan(out[7]))
    assert numpy.all(numpy.isfinite(numpy.delete(out, 7, 0)))


def test_the_same_bits_every_time():
    A = Csr(200, 300, 0.1, "float32")
    plan = tessera.AttentionPlan(*A.arrays, values="bias", prepare_backward=True)
    q, k, v, g = (numbers((n, 32), "float32", s) for n, s in ((200, 2), (300, 3), (300, 4), (200, 5)))
    out, lse = plan.apply(q, k, v, lse=True)
    first = plan.backward(g, q, k, v, out, lse, grad_values=True)
    for _ in range(20):
        again = plan.backward(g, q, k, v, *plan.apply(q, k, v, lse=True), grad_values=True)
        assert all(numpy.array_equal(a, b) for a, b in zip(first, again))


def test_offsets_of_64_bits_and_objects():
    A = Csr(37, 50, 0.1, "float64", "int64")
    q, k, v = numbers((37, 8), "float64"), numbers((50, 8), "float64", 3), numbers((50, 8), "float64", 4)
    exact = Reference(A, q, k, v, 1.0)
    for plan in (tessera.AttentionPlan(*A.arrays), tessera.AttentionPlan(A.exact())):
        check(plan.apply(q, k, v, scale=1.0), exact.out, exact.error)
    statistics = plan.statistics()
    assert statistics["operation"] == "attention" and statistics["nnz"] == A.data.size
    assert plan.shape == (37, 50) and plan.workspace_bytes(8) >= 0


def test_bad_calls():
    A = Csr(37, 50, 0.1, "float64")
    q, k, v = numbers((37, 8), "float64"), numbers((50, 8), "float64"), numbers((50, 6), "float64")
    plan = tessera.AttentionPlan(*A.arrays)
    out = numpy.full((37, 6), 7.0)
    lse = numpy.full(37, 7.0)
    for wrong, error in (((q, k, v[1:]), tessera.DimensionMismatch), ((q, k[:, 1:], v), tessera.DimensionMismatch),
                         ((q[None], k, v), tessera.DimensionMismatch), ((q, k, v.astype("float32")),
                                                                        tessera.NotSupported),
                         ((q[:, 0], k, v), tessera.DimensionMismatch), ((q, k.astype("int32"), v),
                                                                        tessera.NotSupported)):
        with pytest.raises(error):
            plan.apply(*wrong, out=out, lse=lse)
    with pytest.raises(tessera.NotSupported, match="log-sum-exp"):
        plan.apply(q, k, v, out=out, lse=lse.astype("float32"))
    with pytest.raises(tessera.DimensionMismatch):
        plan.apply(q, k, v, out=out, lse=lse[1:])
    assert numpy.all(out == 7) and numpy.all(lse == 7)
    plan.apply(q, k, v, out=out, lse=lse)
    with pytest.raises(tessera.NotSupported, match="prepare_backward"):
        plan.backward(out, q, k, v, out, lse)
    plan = tessera.AttentionPlan(*A.arrays, prepare_backward=True)
    with pytest.raises(tessera.InvalidArgument, match="values"):
        plan.backward(out, q, k, v, out, lse, grad_values=True)
    with pytest.raises(tessera.InvalidArgument, match="into"):
        plan.backward(out, q, k, v, out, lse, into=(q, k))
    for option in ({"values": "factor"}, {"algorithm": "dasp"}, {"compute": "fast"}):
        with pytest.raises(tessera.Error):
            tessera.AttentionPlan(*A.arrays, **option)
    with pytest.raises(tessera.InvalidArgument):
        tessera.AttentionPlan(A.indptr, A.indices + 50, A.data, A.shape)


def softmax_of(A, x):
    """(exact, error) of softmax of the rows, with the bounds of Reference: scores are given, so they err by nothing."""
    u = 2.0**-53 if str(x.dtype) == "float64" else 2.0**-24
    exact, error = numpy.zeros(x.shape), numpy.zeros(x.shape)
    for begin, end in zip(A.indptr[:-1], A.indptr[1:]):
        part = x[..., begin:end].astype("float64")
        top = part.max(-1, initial=-numpy.inf, keepdims=True)
        top = numpy.where(numpy.isfinite(top), top, 0)
        weights = numpy.exp(part - top)
        total = weights.sum(-1, keepdims=True)
        exact[..., begin:end] = weights / numpy.where(total > 0, total, 1)
        # y = e^(x - L): a relative error of what x - L errs by, L of about top.
        error[..., begin:end] = 2 * u * (end - begin + 16 + 2 * abs(top) + abs(numpy.where(part > -numpy.inf, part, 0)))
    error = error * exact
    if str(x.dtype) == "float16":
        error = error + 2 * 2.0**-11 * exact + 2.0**-24
    return exact, error + 2.0**-1000


@pytest.mark.parametrize("offsets", ["int32", "int64"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_row_softmax(shape, dtype, offsets):
    A = Csr(*shape, dtype, offsets)
    for heads in ((), (0,), (1,), (3,)):
        x = (8 * numbers(heads + (A.data.size,), "float64")).astype(dtype)
        x[..., ::7] = -numpy.inf
        exact, error = softmax_of(A, x)
        y = tessera.row_softmax(A.indptr, x)
        assert y.dtype == dtype and y is not x
        check(y, exact, error)
        g = numbers(x.shape, dtype, 6)
        d_x = tessera.row_softmax_backward(A.indptr, y, g)
        u = 2.0**-53 if dtype == "float64" else 2.0**-24
        for begin, end in zip(A.indptr[:-1], A.indptr[1:]):
            a, b = (n[..., begin:end].astype("float64") for n in (y, g))
            total, size = (a * b).sum(-1, keepdims=True), (a * abs(b)).sum(-1, keepdims=True)
            limit = 2 * u * (end - begin + 4) * a * (abs(b) + size)
            if dtype == "float16":
                limit = limit + 2 * 2.0**-11 * abs(a * (b - total)) + 2.0**-24
            check(d_x[..., begin:end], a * (b - total), limit + 2.0**-1000)
        assert tessera.row_softmax_backward(A.indptr, y, g, out=g) is g and numpy.array_equal(g, d_x)
        assert tessera.row_softmax(A.indptr, x, out=x) is x and numpy.array_equal(x, y)


def test_row_softmax_takes_strides():
    A = Csr(37, 50, 0.2, "float64")
    x = numbers((A.data.size, 3), "float64").T
    out = numpy.full((A.data.size, 3), numpy.nan).T
    tessera.row_softmax(A.indptr, x, out=out)
    check(out, *softmax_of(A, x))


def test_row_softmax_refuses():
    A = Csr(37, 50, 0.2, "float64")
    x = numbers(A.data.size, "float64")
    out = numpy.full(x.shape, 7.0)
    with pytest.raises(tessera.DimensionMismatch):
        tessera.row_softmax(A.indptr, x, out=out[1:])
    with pytest.raises(tessera.NotSupported, match="one type"):
        tessera.row_softmax(A.indptr, x, out=out.astype("float32"))
    with pytest.raises(tessera.NotSupported, match="indptr"):
        tessera.row_softmax(A.indptr.astype("float64"), x, out=out)
    with pytest.raises(tessera.DimensionMismatch):
        tessera.row_softmax(A.indptr, x[None, None], out=out)
    with pytest.raises(TypeError):
        tessera.row_softmax(A.indptr, "x", out=out, check=False)
    for wrong in (A.indptr[:-1], A.indptr + 1, A.indptr[::-1].copy()):
        with pytest.raises(tessera.InvalidArgument, match="ascend"):
            tessera.row_softmax(wrong, x, out=out)
    assert numpy.all(out == 7)
