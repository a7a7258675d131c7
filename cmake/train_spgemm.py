#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Trains the models by which Auto chooses the method of C = A B (src/features/Tessera_SpgemmFeatureVector.hpp).

    train_spgemm.py products [--device] [--real FOLDER] > products.sh   # commands that measure; families by comments
    sh products.sh BENCH FEATURES.jsonl                                  # tessera_bench writes a line per product
    train_spgemm.py pack products.sh perf_test/results/spgemm-choice-host FEATURES.jsonl...
    train_spgemm.py tree perf_test/results/spgemm-choice-host [--write]  # decision tree: regrets, header of src/spgemm
    train_spgemm.py net perf_test/results/spgemm-choice-host [--write]   # MatNet in small: the same

Data: NAME.csv (a row per product: names, family, features, seconds per method; empty where a method was refused) and
NAME.images.xz (two density images per product, 128 x 128 levels of four bits). What is tested was never seen in kind:
kinds of matrices (families that are alike) are left out one after the other, and a fixed set (HELD_OUT) at once. Needs
numpy and scikit-learn, for the network jax and optax. Everything is seeded.
"""

import argparse
import csv
import json
import lzma
import os

# Their densities and features are made again in a test.
TEST_PRODUCTS = ["gen:stencil2d:nx=100:ny=90:points=5", "gen:diagonals:n=10000:count=31:reach=15:missing=0.5:seed=12",
                 "gen:rmat:scale=11:degree=16:symmetric=0", "gen:uniform:rows=1000:cols=1000:per_row=20"]
WORST = 8.0  # a method that is slower than this by comparison, or was refused, counts as so much slower
HEADER = """// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
"""
HELD_OUT = ["stencil", "fem", "web", "linear programs"]
# Files of the collection that the notes describe, by family.
REAL = {
    "fem real": "bcsstk16 bcsstk17 bcsstk25 bcsstk33 fe_body fe_pwt ldg_diffusion",
    "mesh real": "4elt delaunay_n16 wing jagmesh7 minesweeper usroads finan512",
    "stencil real": "cryg2500 olm1000",
    "social real": "PPI email-Enron ca-CondMat as-caida20071105 wiki-Vote musae-facebook karate",
    "citations real": "cora pubmed cit-HepTh FB15k-237 EVA Fashion_MNIST_norm_10NN",
    "web real": "cnr-2000",
    "circuit real": "memplus bayer10 rajat01 rajat19 bips98_606 add32 watt_2 bcspwr10 494_bus",
    "linear programs real": "lp_maros_r7 lp_fit2d lp_dfl001 lp_d2q06c lp_80bau3b rail582",
    "layers real": "radixnet_n1024_l1 dlmc_tr_mag90_dec0_ffn2",
    "rectangular real": "Groebner_id2003_aug ch7-9-b3 ash219 orani678 mbeacxc",
    "batch real": "DD",
}


def generated():
    """(family, A, B or None) of the benchmark's generators."""
    out = []

    def add(family, specs):
        out.extend((family, "gen:" + s, None) for s in specs)

    add("stencil 2d", [f"stencil2d:nx={x}:ny={y}:points={p}" for p in (5, 9)
                       for x, y in ((30, 30), (100, 90), (300, 200), (600, 500), (17, 9000))])
    add("stencil 3d", [f"stencil3d:nx={n}:ny={n + 3}:nz={k}:points={p}"
                       for n, k, p in ((9, 9, 7), (24, 24, 7), (50, 40, 7), (70, 60, 7), (8, 8, 27), (20, 20, 27),
                                       (40, 30, 27), (12, 200, 27))])
    add("markov", [f"markov2d:nx={n}:ny={n}:gap={g}" for n, g in ((60, 20), (200, 100), (400, 300), (500, 3))])
    add("diagonals", [f"diagonals:n={n}:count={c}:reach={r}:missing={m}:seed={i}" for i, (n, c, r, m) in enumerate((
        (2000, 3, 1, 0), (20000, 3, 1, 0), (200000, 3, 1, 0), (200000, 1, 0, 0), (20000, 5, 2, 0.1),
        (50000, 7, 1000, 0), (50000, 7, 1000, 0.3), (50000, 7, 1000, 0.6), (50000, 13, 40, 0), (50000, 13, 40, 0.5),
        (100000, 5, 30000, 0.2), (10000, 31, 15, 0), (10000, 31, 15, 0.5), (10000, 31, 15, 0.8), (5000, 101, 50, 0),
        (5000, 101, 50, 0.4), (5000, 101, 50, 0.8), (30000, 20, 5000, 0.05), (30000, 40, 5000, 0.7),
        (300000, 4, 500, 0)))])
    add("diagonals and others", [f"diagonals:n={n}:count={c}:reach={r}:missing={m}:stray={s}:seed=9"
                                 for n, c, r, m, s in (
        (40000, 7, 500, 0, 0.001), (40000, 7, 500, 0, 0.01), (40000, 7, 500, 0, 0.1), (40000, 3, 1, 0, 0.0005),
        (40000, 15, 7, 0.1, 0.002), (8000, 9, 900, 0, 0.01), (100000, 5, 300, 0.1, 0.0001))])
    add("fem", [f"fem:elements={e}:nx={n}:ny={n // 2 + 2}:nz={k}:dof={d}:numbering={o}:cavities={c}"
                for e, n, k, d, o, c in (
                    ("tet", 10, 8, 1, "rcm", 2), ("tet", 24, 10, 1, "rcm", 6), ("tet", 24, 10, 1, "shuffled", 6),
                    ("tet", 30, 20, 1, "natural", 0), ("tet", 14, 8, 3, "rcm", 6), ("tet", 16, 10, 2, "natural", 6),
                    ("hex", 10, 8, 1, "natural", 0), ("hex", 20, 20, 1, "natural", 0), ("hex", 20, 10, 1, "rcm", 3),
                    ("hex", 10, 8, 3, "natural", 0), ("hex", 8, 8, 6, "rcm", 1), ("hex", 12, 8, 4, "shuffled", 2))])
    add("block grid", [f"block_grid:nx={x}:ny={y}:nodes={n}:dof={d}:missing={m}" for x, y, n, d, m in (
        (12, 16, 2000, 1, 8), (12, 16, 3000, 2, 8), (12, 16, 3000, 3, 0), (20, 20, 6000, 3, 8), (12, 16, 1500, 5, 4),
        (8, 16, 1000, 6, 0))])
    add("rmat", [f"rmat:scale={s}:degree={d}:symmetric={y}" for s, d, y in (
        (9, 8, 0), (11, 16, 0), (12, 6, 1), (13, 8, 0), (14, 4, 1), (15, 8, 0), (16, 4, 0), (17, 2, 0))])
    add("community", [f"community:n={n}:edges={e}:alpha={a}:local={l}:size={z}" for n, e, a, l, z in (
        (3000, 20000, 0.5, 0.6, 100), (20000, 100000, 0.4, 0.8, 100), (20000, 60000, 0.2, 0.0, 500),
        (60000, 200000, 0.3, 0.9, 60), (4000, 90000, 0.5, 0.5, 400))])
    add("web", [f"web:n={n}:tail={t}:longest={l}:local={o}:window={w}" for n, t, l, o, w in (
        (5000, 1.45, 300, 0.65, 200), (30000, 1.45, 1000, 0.65, 200), (100000, 2.0, 1000, 0.8, 100),
        (200000, 1.6, 800, 0.9, 50), (50000, 1.45, 4700, 0.3, 200))])
    add("circuit", [f"circuit:n={n}:long_every={e}:long_min={a}:long_max={b}:near={r}:dense_cols={d}"
                    for n, e, a, b, r, d in (
        (3000, 1000, 50, 200, 20, 1), (20000, 0, 0, 0, 20, 0), (50000, 10000, 1000, 2000, 20, 0),
        (100000, 0, 0, 0, 5, 0), (20000, 5000, 500, 900, 100, 2), (150000, 50000, 2000, 4000, 20, 0))])
    add("chem", [f"chem:n={n}:median={m}:shortest=4:longest={l}:local={o}:window={w}:run={r}" for n, m, l, o, w, r in (
        (2000, 30, 300, 0.7, 500, 8), (8000, 20, 200, 0.9, 300, 4), (5000, 60, 600, 0.5, 1000, 8),
        (20000, 12, 100, 0.7, 3000, 1))])
    add("linear programs", [f"lp:rows={r}:cols={c}:per_col={p}:skew={s}:slack={k}" for r, c, p, s, k in (
        (300, 3000, 4, 0.5, 1), (500, 20000, 6, 0.5, 0), (3000, 9000, 5, 0.2, 1), (2000, 40000, 3, 0.8, 1),
        (100, 50000, 3, 0, 0))])
    add("batch", [f"batch:graphs={g}:smallest={a}:largest={b}:degree={d}:loops={l}" for g, a, b, d, l in (
        (50, 10, 60, 4, 0), (1000, 10, 60, 4, 1), (5000, 5, 20, 3, 1), (300, 50, 200, 12, 1), (2000, 30, 31, 8, 0),
        (20000, 8, 9, 4, 0))])
    add("uniform", [f"uniform:rows={n}:cols={n}:per_row={p}" for n, p in (
        (1000, 2), (1000, 20), (3000, 60), (10000, 4), (10000, 16), (50000, 2), (50000, 5), (50000, 12), (200000, 3),
        (200000, 1), (500000, 1), (600, 200))])
    add("uneven rows", [f"random:rows={n}:cols={n}:mean={m}:lengths={k}" for n, m, k in (
        (2000, 10, "uniform"), (20000, 5, "uniform"), (20000, 8, "geometric"), (100000, 2, "geometric"),
        (20000, 6, "power"), (100000, 3, "power"), (200000, 0.3, "geometric"), (400000, 0.05, "uniform"),
        (3000, 40, "power"), (20000, 8, "equal"), (1000000, 0.02, "equal"))])
    add("layers", ["uniform:rows=512:cols=2048:per_row=200", "uniform:rows=1024:cols=1024:per_row=32",
                   "uniform:rows=256:cols=1024:per_row=100:exact=0"])
    for a, b in (("stencil2d:nx=200:ny=200:points=5", "diagonals:n=40000:count=3:reach=1"),
                 ("uniform:rows=20000:cols=40000:per_row=4", "diagonals:n=40000:count=7:reach=300"),
                 ("rmat:scale=15:degree=4", "uniform:rows=32768:cols=32768:per_row=5"),
                 ("stencil3d:nx=30:ny=30:nz=30:points=27", "uniform:rows=27000:cols=4000:per_row=2"),
                 ("uniform:rows=5000:cols=27000:per_row=3", "stencil3d:nx=30:ny=30:nz=30:points=7"),
                 ("diagonals:n=30000:count=5:reach=2", "diagonals:n=30000:count=9:reach=900"),
                 ("diagonals:n=30000:count=9:reach=900:missing=0.5", "uniform:rows=30000:cols=30000:per_row=6"),
                 ("uniform:rows=100:cols=30000:per_row=50", "uniform:rows=30000:cols=3000000:per_row=4")):
        out.append(("other B", "gen:" + a, "gen:" + b))
    for family, a, b in (
            ("wide uniform", "uniform:rows=50:cols=9000:per_row=20", "uniform:rows=9000:cols=1000000:per_row=9"),
            ("wide uniform", "uniform:rows=1000:cols=9000:per_row=20", "uniform:rows=9000:cols=1000000:per_row=9"),
            ("wide uniform", "uniform:rows=3000:cols=5000:per_row=4", "uniform:rows=5000:cols=500000:per_row=4"),
            ("wide uniform", "random:rows=400:cols=2000:mean=3", "random:rows=2000:cols=3000000:mean=7"),
            ("wide linear programs", "uniform:rows=40:cols=500:per_row=9",
             "lp:rows=500:cols=1000000:per_col=1:skew=0.2"),
            ("wide linear programs", "uniform:rows=10:cols=4000:per_row=40",
             "lp:rows=4000:cols=400000:per_col=1:skew=0"),
            ("wide linear programs", "uniform:rows=90:cols=20000:per_row=4",
             "lp:rows=20000:cols=2000000:per_col=1:skew=0"),
            ("wide graphs", "uniform:rows=64:cols=262144:per_row=30", "rmat:scale=18:degree=4"),
            ("wide graphs", "uniform:rows=1000:cols=262144:per_row=10", "rmat:scale=18:degree=4"),
            ("wide graphs", "uniform:rows=200:cols=200000:per_row=30", "community:n=200000:edges=600000"),
            ("wide stencil", "uniform:rows=50:cols=1000000:per_row=90", "stencil2d:nx=1000:ny=1000"),
            ("wide stencil", "uniform:rows=3000:cols=1000000:per_row=30", "stencil2d:nx=1000:ny=1000")):
        out.append((family, "gen:" + a, "gen:" + b))
    return out


def products(options):
    methods = "binned,dia,ell" if options.device else "spa,hash,heap,coo,dia,ell"
    rows = [(family, f"{options.real}/{name}.mtx.gz", None) for family, names in REAL.items()
            for name in dict.fromkeys(names.split())] if options.real else []
    rows += generated()
    print("# sh THIS BENCH FEATURES.jsonl")
    for family, a, b in rows:
        right = f" --matrix-b {b}" if b else ""
        print(f'"$1" --op spgemm --algorithm {methods} --matrix {a}{right} --features "$2" --repeat 5 --budget 0.5 '
              f"--quiet  # {family}")



# ---- data ----------------------------------------------------------------------------------------------------------


def families(script):
    """Of each product, from the comments of the commands."""
    out = {}
    for line in script:
        if line.startswith("#"):
            continue
        words, family = line.split("  # ")
        words = words.split()
        b = words[words.index("--matrix-b") + 1] if "--matrix-b" in words else ""
        out[(name_of(words[words.index("--matrix") + 1]), b)] = family.strip()
    return out


def name_of(spec):
    return os.path.basename(spec).replace(".mtx.gz", "") if spec.endswith(".gz") else spec


def pack(options):
    with open(options.script, encoding="utf-8") as f:
        family = families(f)
    runs = {}
    for path in options.features:
        with open(path, encoding="utf-8") as f:
            for line in f:
                j = json.loads(line)
                runs.setdefault((j["A"], j["B"]), []).append(j)
    lines = [r[-1] for r in runs.values()]
    least = {key: {m: min((j["least seconds"][m] for j in r if m in j["least seconds"]), default=None)
                   for m in r[0]["seconds"]} for key, r in runs.items()}
    names, methods = list(lines[0]["features"]), list(lines[0]["seconds"])
    images = []
    with open(options.data + ".csv", "w", encoding="utf-8", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["A", "B", "family"] + names + ["seconds of " + m for m in methods] + ["seconds of features"])
        for j in lines:
            times = [least[(j["A"], j["B"])][m] for m in methods]
            cost = j["seconds of features"]
            out.writerow([j["A"], j["B"], family[(j["A"], j["B"])]] + [f"{j['features'][n]:.6g}" for n in names] +
                         ["" if t is None else f"{t:.4g}" for t in times] + [f"{cost['diagonals']:.3g}"])
            for image in (j["image of A"], j["image of B"] or None):
                images.append(bytes.fromhex(image) if image else b"")
    print(f"{len(lines)} products, {os.path.getsize(options.data + '.csv')} bytes")
    if options.without_images:
        return
    with open(options.data + ".images.xz", "wb") as f:
        f.write(lzma.compress(b"".join(len(i).to_bytes(2, "big") + i for i in images), preset=9 | lzma.PRESET_EXTREME))
    print(f"images: {os.path.getsize(options.data + '.images.xz')} bytes")


class Data:
    """Features X, seconds T (infinite where refused), images as 0 to 1 of A and B, families and kinds of them."""

    def __init__(self, path, with_images=False):
        with open(path + ".csv", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        prefix = "seconds of "
        self.methods = [k[len(prefix):] for k in rows[0] if k.startswith(prefix) and k != prefix + "features"]
        self.names = [k for k in rows[0] if k not in ("A", "B", "family") and not k.startswith(prefix)]
        self.products = [(r["A"], r["B"]) for r in rows]
        self.family = [r["family"] for r in rows]
        self.kind = np.array([kind_of(f) for f in self.family])
        self.X = np.array([[float(r[n]) for n in self.names] for r in rows])
        self.T = np.array([[float(r[prefix + m] or "inf") for m in self.methods] for r in rows])
        # Those that Auto takes first; the regret is over the fastest of all.
        order = sorted(range(len(self.methods)), key=lambda m: self.methods[m] in ("heap", "coo"))
        self.methods = [self.methods[m] for m in order]
        self.T = self.T[:, order]
        self.taken = sum(m not in ("heap", "coo") for m in self.methods)
        # What is refused is not taken: plans fall back to the first method.
        self.cost = np.where(np.isinf(self.T), self.T[:, :1], self.T) / self.T.min(axis=1, keepdims=True)
        self.log = np.log(np.minimum(np.where(np.isinf(self.T), WORST * self.T.min(axis=1, keepdims=True), self.T) /
                                     self.T.min(axis=1, keepdims=True), WORST))
        if with_images:
            with open(path + ".images.xz", "rb") as f:
                text, at, images = lzma.decompress(f.read()), 0, []
            for _ in range(2 * len(rows)):
                n = int.from_bytes(text[at:at + 2], "big")
                packed = np.frombuffer(text[at + 2:at + 2 + n], dtype=np.uint8)
                at += 2 + n
                levels = np.stack([packed >> 4, packed & 15], axis=1).reshape(-1)
                images.append(levels.reshape(128, 128) / 15.0 if n else images[-1])
            self.images = np.array(images, dtype=np.float32).reshape(len(rows), 2, 128, 128)


def kind_of(family):
    """Families whose matrices are alike, which are therefore left out together."""
    kinds = {"stencil": ("stencil 2d", "stencil 3d", "markov", "stencil real", "wide stencil"),
             "diagonals": ("diagonals", "diagonals and others"), "fem": ("fem", "block grid", "fem real"),
             "mesh": ("mesh real",), "graphs": ("rmat", "community", "social real", "citations real", "wide graphs"),
             "web": ("web", "web real"), "circuit": ("circuit", "circuit real"),
             "linear programs": ("linear programs", "linear programs real", "rectangular real",
                                 "wide linear programs"),
             "random": ("uniform", "uneven rows", "layers", "layers real", "wide uniform"),
             "batch": ("batch", "batch real"),
             "chem": ("chem",), "other B": ("other B",)}
    return next(k for k, members in kinds.items() if family in members)


def report(name, data, chosen, rows):
    """chosen: per product an index of methods."""
    regret = data.cost[rows, chosen[rows]]
    right = np.mean(regret < 1.02)
    worst = rows[np.argmax(regret)]
    print(f"  {name:28s} accuracy {100 * right:5.1f} %   regret mean {regret.mean():.3f}, geometric "
          f"{np.exp(np.log(regret).mean()):.3f}, worst {regret.max():.2f} ({' '.join(data.products[worst])})")


def evaluate(data, title, fit, folds):
    """fit(rows) gives a function of rows that chooses. Kinds are left out in so many groups, one after the other."""
    everything = np.arange(len(data.products))
    kinds = sorted(set(data.kind))
    fold = np.array([kinds.index(k) % folds for k in data.kind])
    always = np.zeros(len(everything), dtype=int)
    best = np.argmin(data.T, axis=1)
    print(f"{len(kinds)} kinds of matrices in {min(folds, len(kinds))} groups, each left out in turn, "
          f"{len(everything)} products:")
    chosen = always.copy()
    for group in range(min(folds, len(kinds))):
        chosen[fold == group] = fit(everything[fold != group])(everything[fold == group])
    report("always " + data.methods[0], data, always, everything)
    report(title, data, chosen, everything)
    for kind in kinds if folds >= len(kinds) else []:
        report("  of these " + kind, data, chosen, everything[data.kind == kind])
    counts = ", ".join(f"{m} {np.sum(best == i)}" for i, m in enumerate(data.methods))
    print("  fastest: " + counts)
    held = np.isin(data.kind, HELD_OUT)
    print(f"held out at once ({', '.join(HELD_OUT)}), {held.sum()} products:")
    chosen[everything[held]] = fit(everything[~held])(everything[held])
    report("always " + data.methods[0], data, always, everything[held])
    report(title, data, chosen, everything[held])


# ---- decision tree -------------------------------------------------------------------------------------------------

# Numbers without a size, so that what is learned holds for larger matrices.
TREE_FEATURES = ["DIA work", "columns per product", "products per row", "compression"]


def fit_tree(data, rows, leaves):
    """A classifier by the fastest method, products weighted by what the second fastest would lose."""
    from sklearn.tree import DecisionTreeClassifier
    used = [data.names.index(n) for n in TREE_FEATURES]
    model = DecisionTreeClassifier(max_leaf_nodes=leaves, min_samples_leaf=3, random_state=1)
    model.fit(data.X[rows][:, used], np.argmin(data.T[rows, :data.taken], axis=1),
              sample_weight=np.sort(data.log[:, :data.taken] - data.log[:, :data.taken].min(axis=1, keepdims=True),
                                    axis=1)[rows, 1])
    return model, used


def tree(options):
    data = Data(options.data)

    def fit(rows):
        model, used = fit_tree(data, rows, options.leaves)
        return lambda r: model.predict(data.X[r][:, used])

    for folds in (100, 4):
        evaluate(data, "tree", fit, folds)
    model, used = fit_tree(data, np.arange(len(data.products)), options.leaves)
    nodes = model.tree_

    def collapsed(n):
        """(method) or (feature, threshold, below or equal, above)"""
        if nodes.children_left[n] < 0:
            return int(model.classes_[np.argmax(nodes.value[n])])
        low, high = collapsed(nodes.children_left[n]), collapsed(nodes.children_right[n])
        return low if low == high else (used[nodes.feature[n]], nodes.threshold[n], low, high)

    lines = []

    def put(n):
        at = len(lines)
        lines.append(None)
        if isinstance(n, int):
            lines[at] = f"    {{-1, 0, 0, 0, SpgemmAlgorithm::{data.methods[n].capitalize()}}},"
            return at
        feature, threshold, low, high = n
        where = [put(low), put(high)]
        lines[at] = (f"    {{{feature}, {threshold:.4g}, {where[0]}, {where[1]}, SpgemmAlgorithm::Auto}},"
                     f"  // {data.names[feature]}")
        return at

    put(collapsed(0))
    print("\n".join(lines))
    if options.write:
        place = "device" if "binned" in data.methods else "host"
        write_between("src/spgemm/Tessera_SpgemmTrees.hpp", place, lines)


def write_between(path, mark, lines):
    """In place of what stands between the comments `begin MARK` and `end MARK`."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    begin, end = text.index(f"// begin {mark}"), text.index(f"// end {mark}")
    begin = text.index("\n", begin) + 1
    with open(path, "w", encoding="utf-8") as f:
        f.write(text[:begin] + "\n".join(lines) + "\n    " + text[end:])


# ---- MatNet --------------------------------------------------------------------------------------------------------


def net_functions():
    """The network of src/lib/Tessera_SpgemmNet.cpp."""
    import jax
    import jax.numpy as jnp

    def conv(x, w, b, stride, margin):
        margins = [(margin, w.shape[2] - 1 - margin)] * 2
        y = jax.lax.conv_general_dilated(x, w, (stride, stride), margins) + b[:, None, None]
        return jnp.tanh(jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"))

    def branch(p, image):
        x = conv(image[:, None], p["conv1"], p["conv1 bias"], 4, 2)
        x = conv(x, p["conv2"], p["conv2 bias"], 1, 1)
        x = conv(x, p["conv3"], p["conv3 bias"], 1, 1)
        return jnp.tanh(x.reshape(x.shape[0], -1) @ p["image"].T + p["image bias"])

    def apply(p, images, features):
        f = jnp.tanh(features @ p["features"].T + p["features bias"])
        joined = jnp.concatenate([branch(p, images[:, 0]), branch(p, images[:, 1]), f], axis=1)
        return joined @ p["last"].T + p["last bias"]

    return jax, jnp, apply


def quantized(p):
    """Weights as they are in the sources: whole numbers of 8 bits times one number per layer."""
    out = {}
    for k, v in p.items():
        scale = float(np.abs(v).max()) / 127 if "bias" not in k else 0
        out[k] = np.asarray(v, np.float32) if not scale else np.float32(scale) * np.round(np.asarray(v) / scale)
    return out


def inputs(data, mean, deviation):
    logs = np.log2(np.maximum(data.X, 1e-9)).astype(np.float32)
    return np.clip((logs - mean) / deviation, -4, 4).astype(np.float32)


def fit_net(data, rows, steps=150):
    import optax
    jax, jnp, apply = net_functions()
    logs = np.log2(np.maximum(data.X[rows], 1e-9))
    mean, deviation = logs.mean(axis=0).astype(np.float32), np.maximum(logs.std(axis=0), 0.1).astype(np.float32)
    rng = np.random.default_rng(1)
    shapes = {"conv1": (8, 1, 5, 5), "conv2": (16, 8, 3, 3), "conv3": (16, 16, 3, 3), "image": (16, 256),
              "features": (24, len(data.names)), "last": (data.taken, 56)}
    p = {}
    for k, shape in shapes.items():
        p[k] = jnp.array(rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape), dtype=jnp.float32)
        p[k + " bias"] = jnp.zeros(shape[0], dtype=jnp.float32)
    x, f = data.images[rows], inputs(data, mean, deviation)[rows]
    loss_of = jnp.array(data.log[rows, :data.taken], jnp.float32)
    best = jnp.argmin(loss_of, axis=1)

    def loss(p):
        share = jax.nn.log_softmax(apply(p, x, f))
        regret = jnp.mean(jnp.sum(jnp.exp(share) * loss_of, axis=1))
        likely = -jnp.mean(jnp.take_along_axis(share, best[:, None], axis=1))
        return regret + 0.1 * likely + 1e-4 * sum(jnp.sum(v * v) for k, v in p.items() if "bias" not in k)

    adam = optax.adam(optax.cosine_decay_schedule(3e-3, steps))
    state = adam.init(p)

    @jax.jit
    def step(p, state):
        gradient = jax.grad(loss)(p)
        change, state = adam.update(gradient, state)
        return optax.apply_updates(p, change), state

    for _ in range(steps):
        p, state = step(p, state)
    p = quantized({k: np.asarray(v) for k, v in p.items()})

    def outputs(r):
        return np.asarray(jax.nn.softmax(apply(p, data.images[r], inputs(data, mean, deviation)[r])))

    return p, mean, deviation, outputs


def net(options):
    data = Data(options.data, with_images=True)

    def fit(rows):
        outputs = fit_net(data, rows)[3]
        return lambda r: np.argmax(outputs(r), axis=1)

    if options.evaluate:
        evaluate(data, "MatNet", fit, 4)
    if options.write:
        p, mean, deviation, outputs = fit_net(data, np.arange(len(data.products)))
        write_net(data, p, mean, deviation, outputs)


def numbers(values, form):
    lines, line = [], "   "
    for v in values:
        text = " " + form(v) + ","
        if len(line) + len(text) > 120:
            lines.append(line)
            line = "   "
        line += text
    return "\n".join(lines + [line])


def write_net(data, p, mean, deviation, outputs):
    """The weights, and for the test some products with what the network gives for them."""

    def real(v):
        return f"{float(v):.7g}f" if "." in f"{float(v):.7g}" or "e" in f"{float(v):.7g}" else f"{float(v):.7g}.0f"

    out = [HEADER + '#include "features/Tessera_SpgemmNet.hpp"\n\n'
           "/// \\file\n/// Made by cmake/train_spgemm.py net --write.\n"
           "\n// clang-format off\nnamespace Tessera {\nnamespace Impl {\nnamespace {\n"]
    layers = ["conv1", "conv2", "conv3", "image", "features", "last"]
    text = {}
    for k in layers:
        scale = np.abs(p[k]).max() / 127
        whole = np.round(p[k] / scale).astype(int).reshape(-1)
        out.append(f"const std::int8_t {k}_weights[] = {{\n{numbers(whole, str)}}};")
        out.append(f"const float {k}_bias[] = {{\n{numbers(p[k + ' bias'], real)}}};")
        text[k] = f"{{{k}_weights, {real(scale)}, {k}_bias}}"
    out.append(f"const float mean[] = {{\n{numbers(mean, real)}}};")
    out.append(f"const float deviation[] = {{\n{numbers(deviation, real)}}};")
    out.append("const char* const names[] = {" + ", ".join(f'"{m}"' for m in data.methods[:data.taken]) + "};")
    convolutions = ", ".join(text[k] for k in layers[:3])
    out.append("\n}  // namespace\n\nconst SpgemmNetWeights spgemm_net_host = {{" + convolutions + "},\n    " +
               ",\n    ".join(text[k] for k in layers[3:]) + f",\n    mean, deviation, {data.taken}, names}};\n")
    out.append("}  // namespace Impl\n}  // namespace Tessera")
    with open("src/lib/Tessera_SpgemmNetWeights.cpp", "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")
    # Products whose images a test can make again: from the generators.
    chosen = [i for i, (a, b) in enumerate(data.products) if a in TEST_PRODUCTS and not b]
    out = [HEADER + "#ifndef TESSERA_TEST_SPGEMM_NET_HPP\n#define TESSERA_TEST_SPGEMM_NET_HPP\n\n/// \\file\n"
           "/// Made by cmake/train_spgemm.py net --write: what the framework that trained the network gives.\n"
           "\n// clang-format off\nnamespace Tessera {\nnamespace Testing {\n\nstruct SpgemmNetCase {\n"
           "  const char* matrix;\n  float shares[" + str(data.taken) + "];\n};\n"
           "constexpr SpgemmNetCase spgemm_net_cases[] = {"]
    for i, shares in zip(chosen, outputs(np.array(chosen))):
        out.append(f'    {{"{data.products[i][0][4:]}", {{{", ".join(real(v) for v in shares)}}}}},')
    out.append("};\n\n}  // namespace Testing\n}  // namespace Tessera\n\n#endif")
    with open("tests/support/Tessera_TestSpgemmNet.hpp", "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    p = commands.add_parser("products")
    p.add_argument("--device", action="store_true", help="methods of devices")
    p.add_argument("--real", default="", help="folder of the collection's files")
    p = commands.add_parser("pack")
    p.add_argument("script", help="what `products` printed")
    p.add_argument("data", help="to be written: this name with .csv and .images.xz")
    p.add_argument("--without-images", action="store_true", help="for a tree alone")
    p.add_argument("features", nargs="+", help="of several runs; of each time the least is taken")
    for name in ("tree", "net"):
        p = commands.add_parser(name)
        p.add_argument("data")
        p.add_argument("--write", action="store_true", help="the tables of the sources")
        p.add_argument("--leaves", type=int, default=6, help="of the tree, at most")
        p.add_argument("--evaluate", type=int, default=1, help="0: only the tables are wanted")
    options = parser.parse_args()
    if options.command in ("tree", "net"):
        global np
        import numpy as np
    globals()[options.command](options)


if __name__ == "__main__":
    main()
