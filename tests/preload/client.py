"""An unmodified numpy program. It sums the gradients of an embedding table, some rows of which are used, and
of a dense layer, with all interfaces of mpi4py. It prints a hash of each rank's results."""

import hashlib

import numpy
from mpi4py import MPI

ROWS, WIDTH, STEPS = 8192, 64, 40
world = MPI.COMM_WORLD
seen = hashlib.sha256()


def gradient(step, dense):
    """Whole numbers, so that every order of additions gives the same bits."""
    draw = numpy.random.default_rng(1000 * step + world.rank)
    table = numpy.zeros((ROWS, WIDTH), numpy.float32)
    rows = slice(None) if dense else draw.integers(0, ROWS, 40)
    table[rows] = draw.integers(-9, 9, (ROWS if dense else 40, WIDTH))
    return table


def sums(comm, mine):
    """Compute one sum in four ways."""
    out = numpy.empty_like(mine)
    comm.Allreduce(mine, out, MPI.SUM)
    yield out
    in_place = mine.copy()
    comm.Allreduce(MPI.IN_PLACE, in_place)
    yield in_place
    late = numpy.empty_like(mine)
    comm.Iallreduce([mine, MPI.FLOAT], [late, MPI.FLOAT], MPI.SUM).Wait()
    yield late
    yield comm.allreduce(mine)


twin = world.Dup()
for step in range(STEPS):
    for out in sums(twin if step % 4 == 3 else world, gradient(step, step % 2 == 1)):
        seen.update(out.tobytes())
for op in (MPI.MAX, MPI.MIN, MPI.PROD, MPI.LOR):
    out = numpy.empty((ROWS, WIDTH), numpy.int64)
    world.Allreduce(gradient(1, False).astype(numpy.int64), out, op)
    seen.update(out.tobytes())
twin.Free()
hashes = world.gather(seen.hexdigest())
if world.rank == 0:
    print(*hashes, sep="\n")
