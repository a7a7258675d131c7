# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""The parts of example/gnn that need no PyTorch: graphs, their labels and features, the drawing of curves."""

import gzip
import pathlib
import sys
import xml.etree.ElementTree

import numpy
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "example" / "gnn"))

import curves
import graphs


def test_reads_both_directions_and_loops(tmp_path):
    path = tmp_path / "three.mtx.gz"
    with gzip.open(path, "wt") as file:
        file.write("%%MatrixMarket matrix coordinate real general\n% a comment\n4 4 3\n1 2 0.5\n2 1 1.0\n4 3 -1\n")
    graph = graphs.read(path)
    assert (graph.name, graph.nodes, graph.edges) == ("three", 4, 8)
    assert graph.offsets.tolist() == [0, 2, 4, 6, 8]
    assert graph.columns.tolist() == [0, 1, 0, 1, 2, 3, 2, 3]
    # Two roots and a product: three roundings.
    assert numpy.all(abs(graph.normalised() - 0.5) <= 3 * 2.0**-53)


@pytest.mark.parametrize("text", ["hello", "%%MatrixMarket matrix array real general\n2 2\n1\n1\n1\n1\n",
                                  "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 1\n",
                                  "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 1\n"])
def test_refuses_what_is_no_graph(tmp_path, text):
    path = tmp_path / "wrong.mtx"
    path.write_text(text)
    with pytest.raises(SystemExit):
        graphs.read(path)


def test_planted_communities_are_there_and_the_same_every_time():
    first, second = (graphs.load("planted:nodes=600,degree=10,classes=5", 16, 8) for _ in range(2))
    assert numpy.array_equal(first.features, second.features) and numpy.array_equal(first.labels, second.labels)
    assert numpy.bincount(first.labels).tolist() == [120] * 5
    # Four of five edges are inside of one, and a fifth of the others by chance.
    assert 0.75 < first.same_label() < 0.92
    for words, fault in (("size=3", "option"), ("nodes=x", "number"), ("nodes=0", "number"), ("degree=", "number")):
        with pytest.raises(SystemExit, match=fault):
            graphs.planted(words, "planted")
    assert graphs.load("planted:nodes=3", 4, 8).labels.max() < 3
    with pytest.raises(SystemExit, match="No such file"):
        graphs.read("none.mtx.gz")


def test_communities_of_a_graph_are_shared_by_neighbours():
    # Four rings of 50 that touch in one edge: a label is mostly a stretch of a ring.
    ring = numpy.arange(200)
    graph = graphs.Graph("rings", ring, numpy.where(ring % 50 == 49, ring - 49, ring + 1), 200)
    labels = graphs.communities(graph, 4)
    graph.describe(labels, 8)
    assert labels.shape == (200,) and labels.min() >= 0 and labels.max() <= 3
    assert graph.same_label() > 0.6  # a quarter would be chance
    assert graph.features.shape == (200, 8) and graph.features.dtype == "float32"


def test_curves_are_drawn(tmp_path):
    path = tmp_path / "curves.svg"
    curves.draw({"a < b: loss": {"tessera fp32": [2.0, 1.0, 0.5], "pyg": [2.0, 1.0, float("nan")]}, "one": {"pyg": [1.0]}}, path)
    root = xml.etree.ElementTree.parse(path).getroot()
    lines = [e for e in root if e.tag.endswith("polyline")]
    assert len(lines) == 3 and [len(line.get("points").split()) for line in lines] == [3, 2, 1]
    assert "nan" not in path.read_text()
    assert any("a < b" in (e.text or "") for e in root)
