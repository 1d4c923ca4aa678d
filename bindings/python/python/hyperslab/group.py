"""Groups of arrays that all ranks read and write together: a Zarr group, a step of one, a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hyperslab import _core, _options
from hyperslab._anew import OpenedAnew
from hyperslab._calls import calling, end, give_up, run
from hyperslab._frozen import frozen
from hyperslab._moving import Moving, Report
from hyperslab._printing import legible
from hyperslab._typed import attributes_of, raw_of
from hyperslab.array import Array
from hyperslab.attributes import Attributes
from hyperslab.errors import NotFoundError
from hyperslab.pieces import Boxes, shape_of
from hyperslab.selection import Choosing

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import DTypeLike

    from hyperslab.batch import Batch
    from hyperslab.steps import Step, Steps

__all__ = ["Group", "Report"]


class Group(OpenedAnew, Moving, Choosing, Mapping[str, Array]):
    """An open group of arrays: a Zarr group, a step of one, or a file. Made by `open`, `Group.group` and `Group.step`.

    As a mapping it has the arrays by their names: ``group["rho"]``, ``"rho" in group``, ``len(group)`` and iteration,
    alike for all formats. Arrays in groups below are named by paths: ``group["step_0010/rho"]``.

    Each method says whether it is collective (all ranks of the communicator make the call) or local (any rank makes it
    by itself, and it waits for nobody); properties are local. Lists of the group are the same on all ranks at
    the same place of the program: they change only by collective calls, and by waiting for a request.

    What `open` opened for reading, and arrays of it, can be pickled: it is opened anew where it lands, by one rank
    alone. If one rank opened it alone, forked children may use it, too.
    """

    #: What the attributes were, after so many changes.
    _known_attributes: tuple[int, Mapping[str, Any]] | None = None
    #: What it means that an update did not end.
    _unfinished_means = "each chunk is old or new"

    def _consolidated_above(self) -> list[str]:
        """Groups above with consolidated metadata."""
        return self._core.consolidated_above() if self._comm.rank == 0 else []

    def _inner(self, core: _core.Target) -> Group:
        """A group of this one."""
        return Group(core, self._comm, self._changes)

    def _inner_step(self, core: _core.Target, before_publish: Callable[[], None] | None) -> Step:
        """A step of this group."""
        from hyperslab.steps import Step

        return Step(core, self._comm, before_publish)

    @property
    def removed(self) -> tuple[str, ...]:
        """Names of steps and arrays that an earlier run left unpublished and that opening removed."""
        return tuple(self._core.removed())

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Names of what an update in place began to change and did not end.

        In a NetCDF file that is being written, also of the arrays that have fewer rows than others, where this opening
        has begun a record: a program that appends arrays one after another sees which ones are missing.
        """
        return tuple(self._core.unfinished())

    @property
    def passed_over(self) -> tuple[str, ...]:
        """Records beside it that are not believed, each with the reason.

        Other users who may not change it have made them, or they cannot be read. Nothing that they say is done.
        """
        return tuple(self._core.passed_over())

    @property
    def attrs(self) -> Attributes:
        """Attributes of the group, step or file; changes are collective."""
        return self._attributes_of("", self._attributes)

    def _attributes(self) -> Mapping[str, Any]:
        # Parsed once for each change: who goes through thousands asks for each of them.
        changes, known = self._changes.count, self._known_attributes
        if known is None or known[0] != changes:
            known = self._known_attributes = changes, frozen(attributes_of(self._core.attributes()))
        else:
            _core.check_open(self._core)
        return known[1]

    def _attributes_of(self, name: str, read: Callable[[], Mapping[str, Any]]) -> Attributes:
        """Attributes of this group, or of an array of it, that are read so."""

        def change(set_to: Mapping[str, Any], removed: list[str], *, replace: bool) -> None:
            what = f"change attributes of {repr(name) + ' in ' if name else ''}'{self.path}'"
            with calling(self._comm, what):
                self._core.edit_attributes(name, raw_of(set_to), removed, replace)
            self._changes.count += 1

        return Attributes(read, change)

    def arrays(self) -> list[str]:
        """Names of the arrays, sorted; in a file, in their order, those of its groups by their paths. Local.

        Those that were there when the group was opened or last refreshed, and those that this program has made since:
        of requests, those that were waited for, by `Request.wait` or by a call that blocks. With dedicated servers,
        what a write makes is listed from the next call on, since it may still fail when it has returned. The same on
        all ranks at the same place of the program.
        """
        return self._core.arrays()

    def groups(self) -> list[str]:
        """Names of the groups and of the published steps, sorted. Local, as `arrays`."""
        return self._core.groups()

    @property
    def steps(self) -> Steps:
        """The published steps of the group, in the order of their names."""
        from hyperslab.steps import Steps

        return Steps(self)

    def refresh(self) -> None:
        """Take note of what other programs have made, changed or removed in the group. Collective."""
        with calling(self._comm, f"refresh '{self.path}'"):
            self._core.refresh()
        self._changes.count += 1

    def __contains__(self, name: object) -> bool:
        """Whether there is an array of this name. Local."""
        if not isinstance(name, str):
            return False
        try:
            return bool(self._info(name)) if "/" in name else self._core.has(name)
        except (NotFoundError, UnicodeEncodeError):
            return False

    def __iter__(self) -> Iterator[str]:
        """Names of the arrays: in Zarr of this group, in a file of all groups in it. Local, as `arrays`."""
        return iter(self.arrays())

    def __len__(self) -> int:
        """Number of the arrays. Local, as `arrays`."""
        return len(self.arrays())

    def __bool__(self) -> bool:
        """True, also while it is empty."""
        return True

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __getitem__(self, name: str) -> Array:
        """An array, as this rank finds it in storage. Local.

        Of an array that requests under way make, what it will be, but for its chunks. A rank that holds no piece of it
        and was not told its type waits for the request.

        Raises
        ------
        NotFoundError
            When there is none; it is a `KeyError`, too. This rank's own.
        """
        return Array(self, name)

    def group(self, name: str) -> Group:
        """Open a group or a published step of this group, by its name or path. Collective."""
        with calling(self._comm, f"open group {name!r} of '{self.path}'"):
            inner = self._inner(self._core.group(name))
        if self._origin is not None:
            inner._comes_from(self._origin.below(name), alone=self._comm.size == 1)
        return inner

    def create_group(self, name: str, *, attributes: Mapping[str, Any] | None = None, exist_ok: bool = False) -> Group:
        """Make a group, with those above it that are not there, and open it. Collective.

        Parameters
        ----------
        name : str
            Its name, or its path below this one.
        attributes : mapping, optional
            Its attributes.
        exist_ok : bool
            Whether it may be there already; its attributes are then changed by what is given.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
        ...     mesh = store.create_group("input/mesh", attributes={"cells": 4})
        ...     report = mesh.write("x", np.arange(4.0))
        ...     store["input/mesh/x"].shape
        (4,)
        """
        with calling(self._comm, f"make group {name!r} in '{self.path}'"):
            core = self._core.make_group(name, raw_of(attributes), bool(exist_ok))
            return self._inner(core)

    @_options.keywords(_options.CreateOptions)
    def create_array(
        self, name: str, shape: Sequence[int], dtype: DTypeLike = float, **options: Unpack[_options.CreateOptions]
    ) -> Array:
        """Make an array without writing to it: it has its fill value everywhere. Collective.

        Parameters
        ----------
        name : str
            Its name.
        shape : sequence of int
            Its global shape.
        dtype : optional
            Type of the stored elements.
        chunks, shards, fill_value, dimension_names, attributes, checksum, zstd, codecs, overwrite : optional
            See `write`.
        compression, compression_opts, shuffle, fletcher32, maxshape : optional
            See `write`.

        Returns
        -------
        Array
            To be written by sections.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
        ...     rho = store.create_array("rho", (4, 6), "f4", chunks=(2, 6), fill_value=-1)
        ...     report = rho.write(np.ones((2, 6)), section=slice(2, 4))
        ...     rho[1:3, :2]
        array([[-1., -1.],
               [ 1.,  1.]], dtype=float32)
        """
        what = f"make array {name!r} in '{self.path}'"
        with calling(self._comm, what):
            _options.check("create_array", options, _options.CreateOptions)
            nobody = Boxes(shape, [])
            new: _options.WriteOptions = {**options, "dtype": dtype}  # type: ignore[typeddict-item]
            asks, given = self._prepare_write({name: []}, None, nobody, new)
        run(lambda: self._core.write(asks, given), self._comm, what)
        self._changes.count += 1
        return self[name]

    def delete(self, name: str) -> None:
        """Delete an array, a group or a step, with all that is in it. Collective; ``del group[name]`` does the same.

        It is taken out of sight first, by one rename, and then removed.
        """
        with calling(self._comm, f"delete {name!r} from '{self.path}'"):
            self._core.delete(name)
        self._changes.count += 1

    def __delitem__(self, name: str) -> None:
        """Delete an array; see `delete`. Collective."""
        self.delete(name)

    def rename(self, old: str, new: str) -> None:
        """Give an array, a group or a step of this group another name, which must be free. Collective."""
        with calling(self._comm, f"rename {old!r} to {new!r} in '{self.path}'"):
            self._core.rename(old, new)
        self._changes.count += 1

    def resize(self, name: str, shape: Sequence[int]) -> None:
        """Give an array another shape. Collective.

        What is cut off is removed; what is added has the fill value. Readers see the new shape at once.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
        ...     report = store.write("a", np.arange(6).reshape(2, 3), fill_value=9)
        ...     store.resize("a", (3, 2))
        ...     store["a"][...]
        array([[0, 1],
               [3, 4],
               [9, 9]])
        """
        with calling(self._comm, f"resize {name!r} of '{self.path}'"):
            self._core.resize(name, shape_of(shape))
        self._changes.count += 1

    def flush(self) -> None:
        """Wait for all requests; of a new file, make visible what is whole. Collective.

        A file that is being made (mode ``w`` or ``x``, or ``a`` where there was none) has a hidden name. With the first
        `flush`, or its first step, it gets its own, and an older file of that name is replaced: whatever becomes of the
        program then, what was written so far is there. What is written to a step stays hidden until the step ends. In a
        Zarr store, each call makes visible what it writes.

        Raises
        ------
        Error
            What went wrong in a request of this group that nobody waited for, or in publishing; the same on all ranks.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile, os
        >>> path = tempfile.mkdtemp() + "/run.nc"
        >>> with hs.open(path, "w", unlimited="time") as file:
        ...     report = file.write({"rho": (["time", "x"], np.zeros((1, 3)))})
        ...     before = os.path.exists(path)
        ...     file.flush()
        ...     report = file.append({"rho": np.ones((1, 3))})  # visible when it returns
        ...     with hs.open(path) as seen:
        ...         before, seen["rho"].shape
        (False, (2, 3))
        """
        self._core.flush(publishes=True)
        self._changes.count += 1

    def consolidate(self) -> None:
        """Write consolidated metadata of all nodes below this group, where zarr and xarray look first. Collective.

        Later changes through this package remove them, so that nobody sees an old state.
        """
        with calling(self._comm, f"consolidate '{self.path}'"):
            self._core.consolidate()

    def batch(self) -> Batch:
        """Start a batch: writes that are gathered, and carried out as one call when its context ends. Local.

        Many small arrays take a fraction of the time of as many calls: ranks agree once, all that handle storage make
        files at the same time, and what is to be durable becomes so by one sync. The arrays may have any shapes, types
        and distributions, each its own options. They become visible when all are written, as those of one `write` do.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
        ...     with store.batch() as batch:
        ...         batch.write("rho", np.ones((3, 4)), dimension_names=("x", "y"))
        ...         for number in range(3):
        ...             batch.write(f"u{number}", np.full(number + 1, number), dtype="f4")
        ...     store.arrays()
        ['rho', 'u0', 'u1', 'u2']
        """
        from hyperslab.batch import Batch

        return Batch(self)

    def step(
        self,
        name: str,
        *,
        attributes: Mapping[str, Any] | None = None,
        before_publish: Callable[[], None] | None = None,
    ) -> Step:
        """Start a step: a group that becomes visible whole, at the end of its context, or not at all. Collective.

        Parameters
        ----------
        name : str
            Name of the step; it must be new.
        attributes : mapping, optional
            Attributes of the step's group.
        before_publish : callable, optional
            Called on every rank when all is written and durable, before the step becomes visible. If it raises, the
            step is given up on all ranks. Given on all ranks or on none.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
        ...     with store.step("0001", attributes={"time": 0.5}) as step:
        ...         report = step.write({"rho": np.ones(4), "u": np.zeros(4)})
        ...     store.groups()
        ['0001']
        """
        core, what = _core.Target(), f"step {name!r} of '{self.path}'"
        try:
            with calling(self._comm, what):
                core.begin_step(self._core, name, raw_of(attributes), before_publish is not None)
            return self._inner_step(core, before_publish)
        except BaseException as error:
            give_up(core, self._comm, what, error)
            raise

    def close(self) -> None:
        """End the use of the group on all ranks, when all requests are over. Collective."""
        self._core.close(None)

    def _exit(self, error: BaseException | None) -> None:
        """Close it at the end of its context; after an exception, without waiting for ranks that may not come."""
        if error is None:
            self.close()

    def _give_up(self, error: BaseException) -> None:
        """Leave it, since what a handler of signals raised kept the end of its context from closing it."""
        end(self._core, self._comm, error)

    def __repr__(self) -> str:
        """Kind and path."""
        return f"<{type(self).__name__} '{legible(self.path)}'>"
