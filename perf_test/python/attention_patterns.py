# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Patterns of attention in compressed rows, and the same patterns as PyTorch's masks.

    batch:graphs=1000,least=20,most=40            all pairs of nodes of one graph, as graph transformers have them
    batch:graphs=3000,least=20,most=40,degree=4   each node, and so many random edges per node, in both directions
    blocks:rows=8192,size=64,density=0.1          square blocks, those of the diagonal and random ones
    band:rows=8192,width=256                      columns at most width / 2 from the diagonal
    entries:rows=100000,degree=16                 so many random columns per row
    FILE.mtx[.gz]                                 edges in both directions, and each node's own

Every row has an entry: what softmax of nothing is, libraries see differently. numpy's generator with a fixed seed.
"""

import pathlib

import numpy
import scipy.io
import scipy.sparse
import torch

TILE = 128  # rows and columns of a block of FlexAttention's mask


class Pattern:
    """CSR of 32-bit integers, columns ascending; `allowed` says the same as a function, where it has a short form.

    graph_of: of every node the number of its graph, for batches; block_table: which blocks of block_size are there.
    """

    def __init__(self, name, matrix, kind, **facts):
        matrix = scipy.sparse.csr_matrix(matrix)
        matrix.sum_duplicates()
        matrix.sort_indices()
        self.name, self.kind, self.rows, self.entries = name, kind, matrix.shape[0], matrix.nnz
        self.indptr, self.indices = matrix.indptr.astype("int32"), matrix.indices.astype("int32")
        self.graph_of = self.block_table = self.block_size = self.width = None
        for key, value in facts.items():
            setattr(self, key, value)
        if self.rows == 0 or numpy.diff(self.indptr).min() < 1:
            raise SystemExit(f"{name}: a row without entries")

    def tensors(self, device):
        return tuple(torch.tensor(array, device=device) for array in (self.indptr, self.indices))

    def pairs(self):
        """(row, column) of every entry."""
        return numpy.repeat(numpy.arange(self.rows), numpy.diff(self.indptr)), self.indices


def ones(rows, columns, n):
    return scipy.sparse.coo_matrix((numpy.ones(len(rows), "float32"), (rows, columns)), (n, n)).tocsr()


def batch(name, graphs, least, most, degree=0):
    """Block-diagonal; sizes are uniform."""
    rng = numpy.random.default_rng(1)
    sizes = rng.integers(int(least), int(most) + 1, int(graphs))
    starts = numpy.concatenate([[0], numpy.cumsum(sizes)])
    graph_of = numpy.repeat(numpy.arange(len(sizes)), sizes)
    nodes = numpy.arange(starts[-1])
    if not degree:
        counts = sizes[graph_of]
        rows = numpy.repeat(nodes, counts)
        columns = numpy.arange(len(rows)) - numpy.repeat(numpy.cumsum(counts) - counts - starts[graph_of], counts)
    else:
        half = numpy.repeat(nodes, max(1, int(degree) // 2))
        other = starts[graph_of[half]] + (rng.random(len(half)) * sizes[graph_of[half]]).astype("int64")
        rows, columns = numpy.concatenate([half, other, nodes]), numpy.concatenate([other, half, nodes])
    pattern = Pattern(name, ones(rows, columns, len(nodes)), "batch", graph_of=graph_of)
    pattern.full, pattern.starts, pattern.most = not degree, starts, int(sizes.max())
    return pattern


def blocks(name, rows, size, density):
    n, size = int(rows), int(size)
    count = n // size
    table = numpy.random.default_rng(1).random((count, count)) < float(density)
    table[numpy.arange(count), numpy.arange(count)] = True
    matrix = scipy.sparse.kron(scipy.sparse.csr_matrix(table, dtype="float32"), numpy.ones((size, size), "float32"))
    return Pattern(name, matrix, "blocks", block_table=table, block_size=size)


def band(name, rows, width):
    n, half = int(rows), int(width) // 2
    offsets = numpy.arange(-half, half + 1)
    columns = numpy.arange(n)[:, None] + offsets
    inside = (columns >= 0) & (columns < n)
    at = numpy.broadcast_to(numpy.arange(n)[:, None], columns.shape)[inside]
    return Pattern(name, ones(at, columns[inside], n), "band", width=half)


def entries(name, rows, degree):
    """Columns are distinct: rounded down from one of `degree` equal ranges each, so that lengths are all the same."""
    n, degree = int(rows), int(degree)
    step = n // degree
    columns = numpy.arange(degree) * step + numpy.random.default_rng(1).integers(0, step, (n, degree))
    return Pattern(name, ones(numpy.repeat(numpy.arange(n), degree), columns.ravel(), n), "file")


def read(path):
    matrix = scipy.sparse.coo_matrix(scipy.io.mmread(path))
    if matrix.shape[0] != matrix.shape[1]:
        raise SystemExit(f"{path}: {matrix.shape[0]} x {matrix.shape[1]} is no graph")
    n = numpy.arange(matrix.shape[0])
    return Pattern(pathlib.Path(path).name.split(".")[0],
                   ones(numpy.concatenate([matrix.row, matrix.col, n]), numpy.concatenate([matrix.col, matrix.row, n]),
                        matrix.shape[0]), "file")


def load(text):
    kind, colon, words = text.partition(":")
    makers = {"batch": batch, "blocks": blocks, "band": band, "entries": entries}
    if not colon or kind not in makers:
        return read(text)
    return makers[kind](text, **{key: float(value) for key, value in (word.split("=") for word in words.split(","))})


# --- the same as PyTorch's masks ---------------------------------------------------------------------------------------


def tiles_of(pattern):
    """Tiles of the mask that have entries: (tile rows, tile columns, entries in each, which tile an entry is in)."""
    rows, columns = pattern.pairs()
    across = -(-pattern.rows // TILE)
    keys, tile_of, counts = numpy.unique((rows // TILE).astype("int64") * across + columns // TILE, return_inverse=True,
                                         return_counts=True)
    return keys // across, keys % across, counts, tile_of


def mask_function(pattern, device, tiles):
    """The pattern as a function of row and column: by its short form, else by a bit per slot of the tiles with entries.

    Returns the function and the tensors that it reads.
    """
    def tensor(array, dtype=torch.int32):
        return torch.tensor(numpy.ascontiguousarray(array), dtype=dtype, device=device)

    if pattern.kind == "batch" and pattern.full:
        graph_of = tensor(pattern.graph_of)
        return lambda b, h, q, kv: graph_of[q] == graph_of[kv], [graph_of]
    if pattern.kind == "band":
        width = pattern.width
        return lambda b, h, q, kv: (q - kv <= width) & (kv - q <= width), []
    if pattern.kind == "blocks":
        table, size = tensor(pattern.block_table, torch.bool), pattern.block_size
        return lambda b, h, q, kv: table[q // size, kv // size], [table]
    tile_rows, tile_columns, _, tile_of = tiles
    across = -(-pattern.rows // TILE)
    slot_of = numpy.zeros((across, across), "int32")
    slot_of[tile_rows, tile_columns] = numpy.arange(len(tile_rows))
    rows, columns = pattern.pairs()
    words = numpy.zeros(len(tile_rows) * TILE * (TILE // 32), "uint32")
    at = tile_of.astype("int64") * (TILE * (TILE // 32)) + (rows % TILE) * (TILE // 32) + columns % TILE // 32
    # Entries ascend, so that those of one word of one row follow each other.
    numpy.bitwise_or.at(words, at, numpy.uint32(1) << (columns % 32).astype("uint32"))
    slots, bits = tensor(slot_of), tensor(words.view("int32"))

    def allowed(b, h, q, kv):
        word = bits[slots[q // TILE, kv // TILE] * (TILE * (TILE // 32)) + (q % TILE) * (TILE // 32) + kv % TILE // 32]
        return ((word >> (kv % 32)) & 1) == 1

    return allowed, [slots, bits]


def block_mask(pattern, device):
    """FlexAttention's mask, as create_block_mask makes it of the same function, which for many rows would look at every
    pair of them: tiles that are full need no function, those without entries are left out. Also its bytes."""
    from torch.nn.attention.flex_attention import BlockMask

    tiles = tiles_of(pattern)
    tile_rows, tile_columns, counts, _ = tiles
    function, kept = mask_function(pattern, device, tiles)
    across = -(-pattern.rows // TILE)
    full = counts == TILE * TILE

    def lists(chosen):
        number = numpy.bincount(tile_rows[chosen], minlength=across)
        order = numpy.zeros((across, across), "int32")
        place = numpy.arange(chosen.sum()) - numpy.repeat(numpy.cumsum(number) - number, number)
        order[tile_rows[chosen], place] = tile_columns[chosen]
        return (torch.tensor(array.astype("int32"), device=device)[None, None] for array in (number, order))

    mask = BlockMask.from_kv_blocks(*lists(~full), *lists(full), BLOCK_SIZE=TILE, mask_mod=function,
                                    seq_lengths=(pattern.rows, pattern.rows))
    own = [t for t in vars(mask).values() if isinstance(t, torch.Tensor)] + kept
    return mask, sum(t.numel() * t.element_size() for t in own)


def dense_mask(pattern, device):
    rows, columns = (torch.tensor(array.astype("int64"), device=device) for array in pattern.pairs())
    mask = torch.zeros(pattern.rows, pattern.rows, dtype=torch.bool, device=device)
    mask[rows, columns] = True
    return mask


class Padded:
    """A batch with a graph per item, padded to the largest: the form in which dense attention takes it."""

    def __init__(self, pattern, device):
        graphs = len(pattern.starts) - 1
        rows, columns = (torch.tensor(array.astype("int64"), device=device) for array in pattern.pairs())
        of, starts = (torch.tensor(array, device=device) for array in (pattern.graph_of, pattern.starts))
        self.shape = graphs, pattern.most
        self.place = of * pattern.most + torch.arange(pattern.rows, device=device) - starts[of]
        self.mask = torch.zeros(graphs, 1, pattern.most, pattern.most, dtype=torch.bool, device=device)
        self.mask[of[rows], 0, rows - starts[of[rows]], columns - starts[of[rows]]] = True
        # What is padding attends to all, so that nothing is undefined; nobody reads it.
        filled = torch.zeros(graphs * pattern.most, dtype=torch.bool, device=device)
        filled[self.place] = True
        self.mask |= ~filled.view(graphs, 1, pattern.most, 1)

    def pad(self, x):
        """(heads, nodes, d) to (graphs, heads, most, d)"""
        out = x.new_zeros(x.shape[0], self.shape[0] * self.shape[1], x.shape[2])
        out[:, self.place] = x
        return out.view(x.shape[0], *self.shape, x.shape[2]).transpose(0, 1).contiguous()

    def unpad(self, x):
        return x.transpose(0, 1).flatten(1, 2)[:, self.place]
