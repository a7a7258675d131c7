# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""What plans keep alive, what they let go, threads, and the end of a process."""

import gc
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref

import numpy
import pytest
from support import Csr, numbers

import tessera


class Kept(numpy.ndarray):
    """Arrays that can be watched."""


@pytest.mark.parametrize("algorithm", ["csr", "auto"])
@pytest.mark.parametrize("plan", [tessera.SpmvPlan, tessera.SpmmPlan])
def test_arrays_live_as_long_as_the_plan(plan, algorithm):
    A = Csr(300, 200, 0.1, "float64")
    B = numbers((200, 3), "float64")
    exact = A.exact() @ B
    arrays = [array.view(Kept) for array in A.arrays[:3]]
    watched = [weakref.ref(array) for array in arrays]
    product = plan(*arrays, A.shape, algorithm=algorithm)
    del A, arrays
    gc.collect()
    rubbish = [numpy.full(30000, 1e9) for _ in range(20)]
    assert numpy.allclose(product @ B, exact, rtol=1e-13, atol=1e-13)
    del rubbish
    assert all(w() is not None for w in watched)
    # New numbers replace the old ones, which nobody needs from then on.
    product.update_values(watched[2]() * 2)
    gc.collect()
    assert watched[2]() is None and watched[0]() is not None
    assert numpy.allclose(product @ B, 2 * exact, rtol=1e-13, atol=1e-13)
    del product
    gc.collect()
    assert all(w() is None for w in watched)


def test_arrays_live_as_long_as_an_attention_plan():
    A = Csr(300, 200, 0.1, "float64")
    q, k, v = numbers((300, 8), "float64"), numbers((200, 8), "float64", 3), numbers((200, 8), "float64", 4)
    arrays = [array.view(Kept) for array in A.arrays[:3]]
    watched = [weakref.ref(array) for array in arrays]
    plan = tessera.AttentionPlan(*arrays, A.shape, values="bias", prepare_backward=True)
    out, lse = plan.apply(q, k, v, lse=True)
    gradient = plan.backward(out, q, k, v, out, lse, grad_values=True)
    del A, arrays
    gc.collect()
    rubbish = [numpy.full(30000, 1e9) for _ in range(20)]
    assert all(w() is not None for w in watched)
    assert numpy.array_equal(plan.apply(q, k, v), out)
    again = plan.backward(out, q, k, v, out, lse, grad_values=True)
    assert all(numpy.array_equal(a, b) for a, b in zip(gradient, again))
    del rubbish, plan
    gc.collect()
    assert all(w() is None for w in watched)


def test_copied_indices_live_too():
    A = Csr(300, 200, 0.1, "float64", "int64")
    x = numbers(200, "float64")
    exact = A.exact() @ x
    plan = tessera.SpmvPlan(A.indptr, A.indices.astype("int64"), A.data, A.shape, algorithm="csr")
    del A
    gc.collect()
    rubbish = [numpy.full(6000, 7, "int32") for _ in range(20)]
    assert numpy.allclose(plan @ x, exact, rtol=1e-13, atol=1e-13)
    del rubbish


def test_nothing_leaks():
    A = Csr(30, 20, 0.3, "float64")
    spmm, sddmm = tessera.SpmmPlan(*A.arrays), tessera.SddmmPlan(*A.arrays)
    B, C = numbers((20, 4), "float64"), numbers((30, 4), "float64")
    p = numpy.empty(A.data.size)
    four, turned = numpy.ones((1, 1, 20, 4)), C[::-1]

    def work(times):
        for _ in range(times):
            spmm.apply(B)
            spmm.apply(B, out=C)
            spmm.apply(B[::-1])
            sddmm.apply(C, B, out=p)
            spmm.update_values(A.data)
            with pytest.raises(tessera.DimensionMismatch):
                spmm.apply(C)
            with pytest.raises(tessera.DimensionMismatch):
                spmm.apply(four)
            with pytest.raises(tessera.InvalidArgument):
                spmm.apply(B, out=turned)
            tessera.SpmvPlan(*A.arrays).statistics()
            tessera.spgemm((*A.arrays[:3], (30, 30)), A.arrays)

    work(20)
    gc.collect()
    counted = [B, C, p, four, turned, *A.arrays[:3], spmm, sddmm]
    references = [sys.getrefcount(o) for o in counted]
    tracemalloc.start()
    work(10)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    work(1000)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert [sys.getrefcount(o) for o in counted] == references
    # One object per call would be 32000 bytes or more; what NumPy and the collector keep for themselves is about 9000.
    assert after - before < 16000


def test_applies_release_the_gil():
    """In the middle of one long apply another thread gets on, which it could not while that held the GIL."""
    A = Csr(2000, 2000, 0.1, "float64")
    plan = tessera.SpmmPlan(*A.arrays)
    B, C = numbers((2000, 1024), "float64"), numpy.empty((2000, 1024))
    plan.apply(B, out=C)
    times = []

    def work():
        times.append(time.perf_counter())
        plan.apply(B, out=C)
        times.append(time.perf_counter())

    worker = threading.Thread(target=work)
    worker.start()
    ticks = []
    while worker.is_alive():
        ticks.append(time.perf_counter())
    worker.join()
    begin, end = times
    middle = [t for t in ticks if begin + 0.2 * (end - begin) < t < end - 0.2 * (end - begin)]
    assert len(middle) > 0


def test_two_threads_with_one_plan():
    A = Csr(300, 200, 0.1, "float64")
    plan = tessera.SpmmPlan(*A.arrays, algorithm="flash", backend="emulated-nvidia")
    operands = [numbers((200, 8), "float64", seed) for seed in range(2)]
    expected = [plan.apply(B) for B in operands]
    wrong = []

    def work(which):
        for _ in range(10):
            if not numpy.array_equal(plan.apply(operands[which]), expected[which]):
                wrong.append(which)

    threads = [threading.Thread(target=work, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("ask", [lambda plan: plan.statistics(), lambda plan: plan.workspace_bytes(3)])
def test_who_asks_a_plan_waits_for_other_threads(ask):
    """One thread at a time is in the library: an answer in the middle of an update would be read from what is freed."""
    A = Csr(2000, 2000, 0.1, "float64")
    plan = tessera.SpmmPlan(*A.arrays)
    B, C = numbers((2000, 256), "float64"), numpy.full((2000, 256), numpy.nan)
    plan.apply(B)
    worker = threading.Thread(target=lambda: plan.apply(B, out=C))
    worker.start()
    while numpy.isnan(C[::50, 0]).all():
        time.sleep(1e-4)
    ask(plan)
    assert not numpy.isnan(C).any()
    worker.join()


def test_numbers_that_come_last_are_kept():
    """Of numbers that threads give a plan at the same time it keeps those that it reads, and no others."""
    A = Csr(30, 20, 0.2, "float64")
    plan = tessera.SpmvPlan(*A.arrays, algorithm="csr")
    longest = numpy.diff(A.indptr).max()
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(300):
            arrays = {number: numpy.full(A.data.size, float(number)).view(Kept) for number in (1, 2, 3)}
            watched = {number: weakref.ref(array) for number, array in arrays.items()}
            start = threading.Barrier(3)

            def work(number):
                start.wait()
                plan.update_values(arrays.pop(number))

            threads = [threading.Thread(target=work, args=(number,)) for number in watched]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            read = round((plan @ numpy.ones(20)).max() / longest)
            assert [number for number, array in watched.items() if array() is not None] == [read]
    finally:
        sys.setswitchinterval(switching)


def python(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)


PLAN = """
import numpy, tessera
arrays = numpy.array([0, 1], "int32"), numpy.array([0], "int32"), numpy.array([3.0])
"""


def test_plans_that_outlive_the_interpreter():
    done = python(PLAN + "plan = tessera.SpmvPlan(*arrays, (1, 1), algorithm='dasp', backend='emulated-nvidia')\n"
                  "import builtins; builtins.kept = plan\nprint((plan @ numpy.ones(1)).tolist())")
    assert (done.returncode, done.stdout, done.stderr) == (0, "[3.0]\n", "")


def test_a_daemon_thread_at_the_end_of_the_interpreter():
    """It is in a plan, without the GIL, which it never gets back."""
    done = python("""
import numpy, tessera, threading, time
plan = tessera.SpmmPlan(numpy.arange(2001, dtype="int32"), numpy.zeros(2000, "int32"), numpy.ones(2000), (2000, 1))

def work():
    while True:
        try:
            plan @ numpy.ones((1, 300))
        except tessera.StalePlan:
            pass

threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_alone_starts_nothing():
    done = python("import tessera; print(tessera.build()['initialized'])")
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_initialize_and_finalize():
    done = python(PLAN + """
tessera.initialize(threads=1)
assert tessera.build()["concurrency"] == 1
plan = tessera.SpmvPlan(*arrays, (1, 1))
tessera.finalize()
for use in (lambda: plan.apply(numpy.ones(1)), lambda: tessera.SpmvPlan(*arrays, (1, 1)), tessera.initialize):
    try:
        use()
    except tessera.StalePlan as error:
        print(error)
tessera.finalize()
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Tessera: Tessera was finalized\n" * 3, "")
