# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""GCN and AGNN on a graph, with what is sparse in them by Tessera, by PyTorch and by PyTorch Geometric.

    GCN   H := relu(A (H W) + b) in five layers of 128, A the normalised adjacency matrix; the last without relu.
    AGNN  H := relu(X W), four times H := P H with P the softmax over a node's neighbours of beta cos(H_i, H_j), 32 wide,
          then H W' + b. beta is learnt.
"""

import math

import torch
from torch import nn
from torch.nn.functional import normalize


class Adjacency:
    """A graph's tensors on a device; `numbers` in the type that it is multiplied in."""

    def __init__(self, graph, device, dtype):
        def tensor(array, kind):
            return torch.tensor(array, dtype=kind, device=device)

        self.nodes = graph.nodes
        self.indptr, self.indices = tensor(graph.offsets, torch.int32), tensor(graph.columns, torch.int32)
        self.numbers = tensor(graph.normalised(), torch.float32).to(dtype)
        # As PyTorch Geometric has edges: source, then target.
        self.edges = torch.stack([tensor(graph.columns, torch.int64), tensor(graph.rows, torch.int64)])
        self.rows, self.columns = self.edges[1], self.edges[0]


# --- A H ---------------------------------------------------------------------------------------------------------------


class Product:
    """A layer of GCN by PyTorch, but for the product with A."""

    def layer(self, h, weight, bias, relu):
        h = self(torch.nn.functional.linear(h, weight))
        h = h if bias is None else h + bias.to(h.dtype)
        return torch.relu(h) if relu else h


class TesseraProduct(Product):
    def __init__(self, graph, compute):
        import tessera.torch

        self.lib, self.graph, self.compute = tessera.torch, graph, compute

    def __call__(self, h):
        g = self.graph
        return self.lib.spmm(g.indptr, g.indices, g.numbers, h, compute=self.compute, constant=True)


class TesseraLayer(TesseraProduct):
    """The layer in one call."""

    def layer(self, h, weight, bias, relu):
        g = self.graph
        return self.lib.graph_convolution(g.indptr, g.indices, g.numbers, h, weight, bias, relu=relu, compute=self.compute)


class _CsrProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, transposed, h):
        ctx.transposed = transposed
        return A @ h

    @staticmethod
    def backward(ctx, grad):
        return None, None, ctx.transposed @ grad


class TorchProduct(Product):
    """torch.sparse_csr tensors of A and of its transpose, the fastest form of PyTorch's own."""

    def __init__(self, graph, compute):
        g = graph
        self.A = torch.sparse_csr_tensor(g.indptr, g.indices, g.numbers, (g.nodes, g.nodes))
        order = torch.argsort(g.columns * g.nodes + g.rows)
        counts = torch.bincount(g.columns, minlength=g.nodes)
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()
        self.T = torch.sparse_csr_tensor(offsets, g.rows[order].int(), g.numbers[order], (g.nodes, g.nodes))

    def __call__(self, h):
        return _CsrProduct.apply(self.A, self.T, h)


class GeometricProduct(Product):
    """The propagation of a GCNConv; edges go one by one."""

    def __init__(self, graph, compute):
        from torch_geometric.nn import GCNConv

        self.conv, self.graph = GCNConv(1, 1, normalize=False), graph

    def __call__(self, h):
        return self.conv.propagate(self.graph.edges, x=h, edge_weight=self.graph.numbers)


# --- P H ---------------------------------------------------------------------------------------------------------------


class TesseraAttention:
    """One call."""

    def __init__(self, graph, compute):
        import tessera.torch

        self.attention, self.graph = tessera.torch.cosine_attention, graph
        self.compute = compute if graph.indptr.is_cuda else "auto"  # hosts have no TF32

    def __call__(self, h, beta):
        return self.attention(self.graph.indptr, self.graph.indices, h, beta, compute=self.compute)


class TesseraParts:
    """The same by its parts, scores and weights in memory."""

    def __init__(self, graph, compute):
        import tessera.torch

        self.lib, self.graph, self.compute = tessera.torch, graph, compute

    def __call__(self, h, beta):
        g = self.graph
        n = normalize(h.float(), dim=1).to(h.dtype)
        scores = self.lib.sddmm(g.indptr, g.indices, (beta * n).to(h.dtype), n, compute=self.compute)
        return self.lib.spmm(g.indptr, g.indices, self.lib.row_softmax(g.indptr, scores), h, compute=self.compute)


class TorchAttention:
    """Gather and scatter."""

    def __init__(self, graph, compute):
        self.graph = graph

    def __call__(self, h, beta):
        rows, columns = self.graph.rows, self.graph.columns
        n = normalize(h.float(), dim=1)
        scores = beta * (n[rows] * n[columns]).sum(1)
        top = torch.full((h.shape[0],), -torch.inf, device=h.device).scatter_reduce(0, rows, scores.detach(), "amax")
        weights = torch.exp(scores - top[rows])
        total = torch.zeros_like(top).index_add(0, rows, weights)
        weights = (weights / total[rows]).to(h.dtype)
        return torch.zeros_like(h).index_add(0, rows, weights[:, None] * h[columns])


class GeometricAttention:
    def __init__(self, graph, compute):
        from torch_geometric.nn import AGNNConv

        self.conv, self.graph = AGNNConv(requires_grad=False, add_self_loops=False).to(graph.numbers.device), graph

    def __call__(self, h, beta):
        self.conv.beta = beta
        return self.conv(h, self.graph.edges)


PRODUCTS = {"tessera": TesseraLayer, "tessera-parts": TesseraProduct, "torch": TorchProduct, "pyg": GeometricProduct}
ATTENTIONS = {"tessera": TesseraAttention, "tessera-parts": TesseraParts, "torch": TorchAttention,
              "pyg": GeometricAttention}


class Gcn(nn.Module):
    sparse = PRODUCTS
    rate = 0.003  # of Adam, at first

    def __init__(self, graph, features, classes, library, compute, hidden=128, layers=5):
        super().__init__()
        self.widths = [hidden] * (layers - 1) + [classes]
        self.linear = nn.ModuleList(nn.Linear(a, b, bias=False)
                                    for a, b in zip([features] + self.widths[:-1], self.widths))
        self.bias = nn.ParameterList(torch.zeros(width) for width in self.widths)
        for linear in self.linear:
            nn.init.xavier_uniform_(linear.weight)
        self.propagation = PRODUCTS[library](graph, compute)

    def forward(self, h):
        last = len(self.widths) - 1
        for i, (linear, bias) in enumerate(zip(self.linear, self.bias)):
            h = self.propagation.layer(h, linear.weight, bias, i < last)
        return h

    def sparse_parts(self):
        """What of an epoch is sparse: (function of one matrix, its columns) per propagation."""
        return [(self.propagation, width) for width in self.widths]


class Agnn(nn.Module):
    sparse = ATTENTIONS
    rate = 0.01

    def __init__(self, graph, features, classes, library, compute, hidden=32, layers=4):
        super().__init__()
        self.first, self.last = nn.Linear(features, hidden), nn.Linear(hidden, classes)
        self.beta = nn.ParameterList(torch.ones(()) for _ in range(layers))
        self.propagation = ATTENTIONS[library](graph, compute)

    def forward(self, h):
        h = torch.relu(self.first(h))
        for beta in self.beta:
            h = self.propagation(h, beta)
        return self.last(h)

    def sparse_parts(self):
        return [(lambda h, beta=beta: self.propagation(h, beta), self.first.out_features) for beta in self.beta]


MODELS = {"gcn": Gcn, "agnn": Agnn}


def missing(library):
    """Why a library cannot be had, or None."""
    try:
        if library.startswith("tessera"):
            import tessera.torch  # noqa: F401
        if library == "pyg":
            import torch_geometric.nn  # noqa: F401
    except ImportError as error:
        return f"{library}: {error}"
    return None


def loss_scale(dtype):
    """Gradients of 16 bits are made larger by this, so that small ones are not lost."""
    return 1024.0 if dtype == torch.float16 else 1.0


def finite(value):
    return not (math.isnan(value) or math.isinf(value))
