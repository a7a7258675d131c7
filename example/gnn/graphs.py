# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Graphs of Matrix Market files and planted ones, with features and labels that are made here.

The files have edges alone, so what is learnt is made: communities of the graph as labels, and features that tell of a
node's community a little, so that it takes the neighbours to tell it well. NumPy's generator with a fixed seed makes
them, the same numbers everywhere.
"""

import gzip
import pathlib

import numpy


class Graph:
    """Edges in both directions and every node's own, in compressed rows; columns ascend."""

    def __init__(self, name, rows, columns, nodes):
        keys = numpy.unique(numpy.concatenate([rows * nodes + columns, columns * nodes + rows,
                                               numpy.arange(nodes, dtype="int64") * (nodes + 1)]))
        self.name, self.nodes, self.edges = name, nodes, keys.size
        self.rows, self.columns = keys // nodes, keys % nodes
        self.degrees = numpy.bincount(self.rows, minlength=nodes)
        self.offsets = numpy.concatenate([[0], numpy.cumsum(self.degrees)])
        self.labels = self.features = None

    def normalised(self):
        """Of every edge, 1 over the root of both degrees: the weights of a graph convolution."""
        root = 1 / numpy.sqrt(self.degrees)
        return root[self.rows] * root[self.columns]

    def describe(self, labels, features):
        """@param features  how many numbers per node"""
        self.labels = labels
        rng = numpy.random.default_rng(2)
        centres = rng.standard_normal((labels.max() + 1, features))
        # Centres are 3.6 deviations of the noise apart, however many features there are: one node alone tells it often,
        # its neighbours better.
        noise = rng.standard_normal((self.nodes, features))
        self.features = (3.6 / numpy.sqrt(2 * features) * centres[labels] + noise).astype("float32")
        return self

    def same_label(self):
        """The share of edges between two nodes that are of one community."""
        between = self.rows != self.columns
        return float((self.labels[self.rows] == self.labels[self.columns])[between].mean()) if between.any() else 1.0


def read(path):
    """A Matrix Market file, .gz or not. Numbers are not looked at; edges get their other direction."""
    path = pathlib.Path(path)
    try:
        with (gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")) as file:
            lines = file.read().split(b"\n")
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror or error}") from None
    words = lines[0].lower().split()
    if words[:3] != [b"%%matrixmarket", b"matrix", b"coordinate"]:
        raise SystemExit(f"{path}: not a sparse matrix of Matrix Market")
    lines = [line for line in lines if line.strip() and not line.startswith(b"%")]
    nodes, columns, entries = map(int, lines[0].split()[:3])
    if nodes != columns:
        raise SystemExit(f"{path}: {nodes} x {columns} is no graph, whose matrix is square")
    width = {b"pattern": 2, b"complex": 4}.get(words[3], 3)
    numbers = numpy.array(b" ".join(lines[1:]).split(), dtype="float64").reshape(-1, width)
    if len(numbers) != entries:
        raise SystemExit(f"{path}: {len(numbers)} entries, its head says {entries}")
    at = numbers[:, :2].astype("int64") - 1
    return Graph(path.name.split(".")[0], at[:, 0], at[:, 1], nodes)


def communities(graph, classes, steps=6):
    """Labels that neighbours share: random numbers per node and class, averaged over neighbours a few times; the largest
    is the label. What all nodes have in common, the average by degree, is taken off after each step."""
    rng = numpy.random.default_rng(1)
    heat = rng.standard_normal((classes, graph.nodes))
    share = graph.degrees / graph.degrees.sum()
    for _ in range(steps):
        for c in range(classes):
            heat[c] = numpy.add.reduceat(heat[c][graph.columns], graph.offsets[:-1]) / graph.degrees
            heat[c] -= (share * heat[c]).sum()
            heat[c] /= max(heat[c].std(), 1e-300)
    return heat.argmax(0)


def planted(words, name):
    """'nodes=600,degree=10': communities first, and four of five edges inside of one."""
    options = {"nodes": 600, "degree": 10, "classes": 8}
    for word in filter(None, words.split(",")):
        key, _, value = word.partition("=")
        if key not in options:
            raise SystemExit(f"planted: no option {key}; there are {', '.join(options)}")
        if not value.isdigit() or int(value) == 0:
            raise SystemExit(f"planted: {key} is a number of 1 or more, not '{value}'")
        options[key] = int(value)
    nodes, degree, classes = options["nodes"], options["degree"], min(options["nodes"], options["classes"])
    rng = numpy.random.default_rng(1)
    labels = rng.permutation(nodes) % classes
    members = [numpy.flatnonzero(labels == c) for c in range(classes)]
    rows = numpy.repeat(numpy.arange(nodes), max(1, degree // 2))
    columns = rng.integers(0, nodes, rows.size)
    near = rng.uniform(size=rows.size) < 0.8
    columns[near] = [rng.choice(members[labels[i]]) for i in rows[near]]
    return Graph(name, rows, columns, nodes), labels


def load(name, features, classes):
    """A file, or planted:OPTIONS, with labels and features."""
    if name.startswith("planted"):
        graph, labels = planted(name.partition(":")[2], name)
        return graph.describe(labels, features)
    graph = read(name)
    return graph.describe(communities(graph, classes), features)
