"""join_mpi and join_alone: libraries that exchange arrays with other processes."""
from __future__ import annotations

from typing import NamedTuple

from . import _runtime


class Rank(NamedTuple):
    """This process as a member of a group."""

    rank: int  #: the number of this process, from 0
    ranks: int  #: the number of processes


def join_mpi(group: str = "data") -> Rank:
    """Makes this process a rank of a group: the processes that `mpirun` has started.

    All libraries of the process that have a group of this name belong to it. All processes call it, before they call such a library. MPI is
    found at run time: Open MPI or MPICH, or the library that the process has loaded, for example by mpi4py. A second call changes nothing.

    Args:
        group: The name of the group in the programs, as in `program step [data ranks] (...)`.

    Returns:
        The number of this rank, and the number of ranks.

    Raises:
        ValueError: MPI cannot be found or fails, or the process has joined the group alone.
    """
    return Rank(*_runtime.join(group, True))


def join_alone(group: str = "data") -> Rank:
    """Makes this process the only rank of a group, so that its libraries exchange nothing. A second call changes nothing.

    Args:
        group: The name of the group in the programs.

    Returns:
        Rank(rank=0, ranks=1).
    """
    return Rank(*_runtime.join(group, False))
