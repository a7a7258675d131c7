# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Which graphs of tessera.torch keep their plans, with stand-ins for tensors: needs no PyTorch."""

import importlib
import sys
import types

import pytest


class Indices:
    """What the cache asks of a tensor; one of inference mode has no version, as PyTorch's."""

    device, dtype, shape = "cpu", "int32", (3,)

    def __init__(self, inference):
        self.inference, self.version = inference, 0

    @property
    def _version(self):
        if self.inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self.version

    def is_inference(self):
        return self.inference

    def data_ptr(self):
        return id(self)

    def stride(self):
        return (1,)


@pytest.fixture
def graphs(monkeypatch):
    try:
        import torch  # noqa: F401
    except ImportError:
        monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
        monkeypatch.delitem(sys.modules, "tessera._graphs", raising=False)
    module = importlib.import_module("tessera._graphs")
    yield module
    if not hasattr(module.torch, "Tensor"):
        sys.modules.pop("tessera._graphs")


def asked(graphs, cache, indptr, indices, made):
    def make():
        made.append(graphs.Product(indptr, indices, 5, 4, "auto"))
        return made[-1]

    return cache.get("spmm", "auto", indptr, indices, 5, "float64", make)


def test_a_graph_keeps_its_plans_until_it_is_changed(graphs):
    cache, made = graphs._Cache(4), []
    indptr, indices = Indices(False), Indices(False)
    first = asked(graphs, cache, indptr, indices, made)
    assert asked(graphs, cache, indptr, indices, made) is first and len(made) == 1
    first.require_unchanged()
    indices.version += 1
    with pytest.raises(RuntimeError, match="changed in place"):
        first.require_unchanged()
    assert asked(graphs, cache, indptr, indices, made) is not first and len(made) == 2


@pytest.mark.parametrize("which", [(True, False), (False, True), (True, True)])
def test_index_tensors_of_inference_mode_keep_none(graphs, which):
    cache, made = graphs._Cache(4), []
    indptr, indices = (Indices(inference) for inference in which)
    for calls in (1, 2):
        asked(graphs, cache, indptr, indices, made).require_unchanged()
        assert len(made) == calls and not cache.entries and not cache.recent


def test_other_errors_pass(graphs):
    class Fake(Indices):
        def data_ptr(self):
            raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        asked(graphs, graphs._Cache(4), Fake(False), Indices(False), [])
