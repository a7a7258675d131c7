# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""The plans of graphs that tensors of PyTorch describe, and the cache that finds them again. A step of training on a
small graph waits for what is done here, so that the way of a graph seen before is short: the same tensor objects, which
lie where they lay and were not changed in place."""

import contextlib
import threading

import torch

from ._errors import DimensionMismatch, InvalidArgument
from ._plans import AttentionPlan, SpmmPlan


class _Kept:
    """What was made for a graph, the tensors that it was last asked for with, as they were then, and when that was."""

    __slots__ = ("made", "tensors", "near", "state", "used")


def _state(indptr, indices):
    """Where index tensors lie, and how often they were changed in place. None of tensors that were made in inference
    mode, which do not count that."""
    try:
        return indptr.data_ptr(), indptr._version, indices.data_ptr(), indices._version
    except RuntimeError:
        if indptr.is_inference() or indices.is_inference():
            return None
        raise


class _Cache:
    """The plans of the graphs used last. Holding their index tensors, it sees no other graph at the same address.

    recent finds a graph by the tensor objects, which costs a third of what finding it by where they lie does.
    """

    def __init__(self, size):
        self.size = size
        self.lock = threading.RLock()
        self.entries, self.recent = {}, {}
        self.clock = 0

    def get(self, kind, compute, indptr, indices, cols, dtype, make):
        state = _state(indptr, indices)
        if state is None:
            return make()  # not kept: a change of the tensors would not be seen
        self.clock += 1
        near = kind, compute, id(indptr), id(indices), cols, dtype
        kept = self.recent.get(near)
        if kept is None or kept.state != state:
            kept = self._find((kind, compute, cols, dtype, indices.device, indptr.dtype, indices.dtype, indptr.shape,
                               indices.shape, indptr.stride(), indices.stride(), *state), make)
            self.recent.pop(kept.near, None)
            kept.tensors, kept.near, kept.state = (indptr, indices), near, state
            self.recent[near] = kept
        kept.used = self.clock
        return kept.made

    def _find(self, key, make):
        kept = self.entries.get(key)
        if kept is None:
            kept = _Kept()
            kept.made, kept.near, kept.used = make(), None, self.clock
            self.entries[key] = kept
            self.shrink()
        return kept

    def shrink(self):
        while len(self.entries) > self.size:
            oldest = min(self.entries, key=lambda key: self.entries[key].used)
            self.recent.pop(self.entries.pop(oldest).near, None)

    def clear(self):
        self.entries.clear()
        self.recent.clear()


cache = _Cache(64)


def untracked(t):
    """What plans take where gradients are recorded; most tensors are that already."""
    return t.detach() if t.requires_grad else t


@contextlib.contextmanager
def _telling(cols, transposed=False):
    """A column that lies outside may be the fault of the operand whose rows were counted, or, of the transpose, of the
    number that was given."""
    try:
        yield
    except InvalidArgument as error:
        if transposed:
            raise InvalidArgument(f"Tessera: indptr and indices are no graph of {cols} columns; its transpose is "
                                  f"{str(error).removeprefix('Tessera: ')}") from None
        if "column outside" not in str(error):
            raise
        raise InvalidArgument(f"{error}; there are {cols} columns, as many as rows of what the graph multiplies") from None


def _fitting(values, indices):
    """Values that no plan needs to record gradients of, one for each entry: a plan of before would tell otherwise what a
    new one tells, and a transpose would pick those that it has."""
    if values.shape != indices.shape:
        raise DimensionMismatch(f"Tessera: values is {tuple(values.shape)}; the graph's entries are "
                                f"{tuple(indices.shape)}")
    return untracked(values)


class Product:
    """A graph's SpmmPlan, and one of its transpose from the first product with that.

    They are two, since values that change are then filled in where they are multiplied with, and not into both.
    """

    def __init__(self, indptr, indices, cols, columns, compute):
        self.indptr, self.indices, self.cols, self.columns, self.compute = indptr, indices, cols, columns, compute
        self.plans = [None, None]
        # Of each: the values that are in it, where they lie, and how often they were changed in place by then.
        self.known = [(None, 0, 0), (None, 0, 0)]
        self.order = None
        self.state = _state(indptr, indices)

    def _transpose(self):
        """Its pattern; order says which entry of the graph each of its entries is."""
        counts = self.indptr.diff()
        rows = torch.arange(counts.numel(), dtype=torch.int32, device=counts.device)
        rows = torch.repeat_interleave(rows, counts, output_size=self.indices.numel())
        columns, self.order = torch.sort(self.indices, stable=True)
        starts = torch.arange(self.cols + 1, dtype=columns.dtype, device=columns.device)
        indptr = torch.searchsorted(columns, starts).to(self.indptr.dtype)
        return indptr, rows[self.order], (self.cols, counts.numel())

    def apply(self, values, x, transposed, constant):
        """x requires no gradient, or none is recorded."""
        known, at, version = self.known[transposed]
        if not (constant and values is known and values.data_ptr() == at and values._version == version):
            self._fill(values, transposed, constant)
        return self.plans[transposed].apply(x)

    def _fill(self, values, transposed, constant):
        # Values that are known are kept, so that no others lie there. Those of inference mode have no version.
        keep = constant and not values.is_inference()
        old, at, version = self.known[transposed]
        same = keep and old is not None and (
            (at, version, old.shape, old.stride()) ==
            (values.data_ptr(), values._version, values.shape, values.stride()))
        if self.plans[transposed] is None:
            pattern = self._transpose() if transposed else (self.indptr, self.indices,
                                                            (self.indptr.numel() - 1, self.cols))
            with _telling(self.cols, transposed):
                self.plans[transposed] = SpmmPlan(*pattern[:2], self._numbers(values, transposed), pattern[2],
                                                  num_columns_hint=self.columns, compute=self.compute)
        elif not same:
            # Whether numbers are still the same cannot be known: changes through .data leave no trace.
            self.plans[transposed].update_values(self._numbers(values, transposed))
        self.known[transposed] = (values, values.data_ptr(), values._version) if keep else (None, 0, 0)

    def require_unchanged(self):
        """A backward pass multiplies with the graph of its forward pass."""
        if _state(self.indptr, self.indices) != self.state:
            raise RuntimeError("Tessera: index tensors of a graph were changed in place between a forward pass and its "
                               "backward pass")

    def _numbers(self, values, transposed):
        values = _fitting(values, self.indices)
        return values[self.order] if transposed else values.contiguous()


class Attention:
    """A graph's AttentionPlan. The first call that wants gradients makes it for both passes, which it stays."""

    def __init__(self, indptr, indices, cols, columns, kind, compute):
        self.indptr, self.indices, self.cols, self.columns = indptr, indices, cols, columns
        self.kind, self.compute = kind, compute
        self.plan = None
        self.backwards = False

    def get(self, values, q, backwards):
        if self.plan is None or (backwards and not self.backwards):
            self.backwards = self.backwards or backwards
            # Numbers that are not read, but their type is the plan's.
            numbers = q.new_empty(self.indices.numel()) if values is None else _fitting(values, self.indices).contiguous()
            with _telling(self.cols):
                self.plan = AttentionPlan(self.indptr, self.indices, numbers, (self.indptr.numel() - 1, self.cols),
                                          values=self.kind, prepare_backward=self.backwards,
                                          dimension_hint=self.columns, compute=self.compute)
        elif values is not None:
            self.plan.update_values(_fitting(values, self.indices).contiguous())
        return self.plan


def product_of(indptr, indices, values, columns, cols, compute):
    """The Product of a graph. @param columns  that what it is multiplied with will mostly have"""
    return cache.get("spmm", compute, indptr, indices, cols, values.dtype,
                     lambda: Product(indptr, indices, cols, max(1, columns), compute))


def attention_of(indptr, indices, q, k, kind, compute):
    """The Attention of a graph; kind says what its values are, as AttentionPlan's values."""
    return cache.get(kind, compute, indptr, indices, k.shape[-2], q.dtype,
                     lambda: Attention(indptr, indices, k.shape[-2], max(1, q.shape[-1]), kind, compute))
