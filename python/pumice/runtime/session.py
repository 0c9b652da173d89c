# SPDX-License-Identifier: Apache-2.0
"""Running a file: load, Session, check, inspect.

Never imports torch; torch tensors are recognised when the caller has it.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pumice import _pumice
from pumice.errors import InvalidInputError
from pumice.runtime import nesting
from pumice.runtime.devices import Device
from pumice.runtime.profile import ProfileRow, profile_row
from pumice.runtime.shapes import run_shapes
from pumice.runtime.tensor_spec import TensorSpec, tensor_spec


class Session:
    """A loaded model: weights and state on a device. Call it as you would call the module.

    `needs`: bytes on the device that the load reckoned, by kind: weights, weight_textures, loading (the most while the
    weights are packed), states, arena, textures and io of a session after one run of each method at the shapes of the
    export.
    `precision`: of the export, as ExportOptions has it.
    `with pumice.load(...) as session:` gives its memory back at the end (`close`).
    Threads may share a session: their calls (and reset, memory, profile) wait for one another, and each gets the
    results of its own inputs. Several sessions run side by side.
    """

    def __init__(self, native: Any, method: str | None = None) -> None:
        self._native = native
        facts = json.loads(native.describe())
        names = [entry["name"] for entry in facts["methods"]]
        if method is not None and method not in names:
            raise InvalidInputError(
                f"no method '{method}'; the file has {', '.join(names)}", code="InvalidArgument", stage="api"
            )
        self._method = names.index(method) if method is not None else 0
        chosen = facts["methods"][self._method]
        self.methods: tuple[str, ...] = tuple(names)
        self.inputs: tuple[TensorSpec, ...] = tuple(map(tensor_spec, chosen["inputs"]))
        self.outputs: tuple[TensorSpec, ...] = tuple(map(tensor_spec, chosen["outputs"]))
        self._device = Device.of(facts["device"])
        self._tested = False
        self.needs: dict[str, int] = facts["needs"]
        self.precision: str = facts["precision"]
        self._in_spec = nesting.parse_arguments(chosen["in_spec"], len(self.inputs))
        self._out_spec = nesting.parse_results(chosen["out_spec"], len(self.outputs))
        self._names = [spec.name for spec in self.inputs]
        self._dtypes = [np.dtype(spec.dtype) for spec in self.inputs]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the method with arguments as the exported module takes them, and returns what that returns.

        Tensors are NumPy arrays or PyTorch tensors of the shapes and dtypes in `inputs`; dtypes are not converted. The
        results are contiguous tensors on the CPU: of PyTorch where an argument is one, else NumPy arrays.
        Raises InvalidInputError for an argument that does not fit, DeviceError when the device fails, CancelledError
        after `cancel`. Ctrl-C ends a long run in the same way, within two seconds.
        """
        return self._run(args, kwargs, 1)

    def run(self, *args: Any, steps: int = 1, **kwargs: Any) -> Any:
        """As a call, with the method run `steps` times (1 to 4096) in few submits, each time with the same inputs.

        Only its state moves on, and inputs that the model writes (ExportOptions.input_updates); the results are those
        of the last time. Raises InvalidInputError for other `steps`.
        """
        return self._run(args, kwargs, steps)

    def run_flat(self, arrays: list[np.ndarray], steps: int = 1) -> list[np.ndarray]:
        """As `run`, with the inputs and outputs as flat lists of arrays in the order of `inputs` and `outputs`.

        Raises InvalidInputError for another number of arrays, or another shape or dtype than `inputs` has.
        """
        return self._native.run(self._arrays(arrays), self._method, _count(steps))

    def warm(self, *sizes: Mapping[str, int | Sequence[int]]) -> None:
        """Prepares runs at other sizes than those of the export, so that the first one takes as long as later ones.

        Each of `sizes` is a run: the shapes of inputs and the numbers of dynamic sizes by their names, {"ids": (32,
        128)} or {"seq": 128}; other inputs follow, what nothing says is as at the export. {} is the run of the export.
        Kernels are compiled, and kept in the cache for later processes; memory is allocated. Nothing runs.
        Raises InvalidInputError for a name, shape or size that the method does not take, DeviceError as a call does.
        """
        runs = [run_shapes(self.inputs, each) for each in sizes]
        # The largest first: where memory grows, what was recorded before goes.
        for shapes in sorted(runs, key=lambda shapes: -sum(map(math.prod, shapes))):
            arrays = [np.empty(shape, dtype) for shape, dtype in zip(shapes, self._dtypes, strict=True)]
            self._native.prepare(arrays, self._method)

    def profile(self, *args: Any, **kwargs: Any) -> list[ProfileRow]:
        """Runs once with a timestamp around every dispatch: a row for each, times in microseconds.

        State moves on as in a call. Call once with the same shapes before: CPU drivers compile a kernel when it first
        runs, and that is in its time. Raises what a call raises.
        """
        return self.profile_flat(nesting.flatten(self._in_spec, args, kwargs, self._names))

    def profile_flat(self, arrays: list[Any]) -> list[ProfileRow]:
        """As `profile`, with the inputs as a flat list of arrays in the order of `inputs`."""
        return [
            profile_row(row) for row in json.loads(self._native.profile(self._arrays(arrays), self._method))["rows"]
        ]

    def cancel(self) -> None:
        """Ends the run that another thread waits in: that thread gets CancelledError, within two seconds.

        Never waits. State is as before the run; where the run updates more than 1 MiB of state, calls raise
        InvalidInputError until `reset`. A run of which nothing is left to submit ends as usual (long runs are submitted
        in parts of about 100 ms). Does nothing when no run is under way.
        """
        self._native.cancel()

    def reset(self) -> None:
        """Gives all state (mutated buffers) its exported values again."""
        self._native.reset()

    def seed(self, seed: int) -> None:
        """Random numbers that the model draws go on from this seed: the same seed, the same runs.

        `reset` goes back to that of the export. Raises InvalidInputError for another number than 0 to 2^64 - 1, and
        where the model draws none.
        """
        if type(seed) is not int or not 0 <= seed < 2**64:
            raise InvalidInputError(
                f"seed must be a whole number from 0 to 2^64 - 1, got {seed!r}", code="InvalidArgument", stage="api"
            )
        self._native.seed(seed)

    @property
    def device(self) -> Device:
        """The device, with what the self test of the kernels found on it.

        On a CPU driver the first call tests them. Before it, this waits for these tests.
        """
        if not self._tested:
            self._native.test()
            self._device = Device.of(json.loads(self._native.describe())["device"])
            self._tested = True
        return self._device

    @property
    def memory(self) -> dict[str, int]:
        """Bytes on the device now, by kind: weights, state, arena, textures, io.

        A run allocates arena and io: before the first one they are 0, and `needs` says what they will be.
        """
        return json.loads(self._native.memory())

    def method(self, name: str) -> Session:
        """Another method of the file, sharing this session's weights and state.

        Raises InvalidInputError for a name that the file does not have.
        """
        return Session(self._native, name)

    def close(self) -> None:
        """Gives the memory on the device back, for all methods of the file; again does nothing.

        A call under way in another thread ends as usual. Later calls raise InvalidInputError (WrongState). Without it
        the memory goes back when the last reference goes.
        """
        self._native.close()
        self._tested = True  # or will never be

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        ins, outs = ("; ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        return f"<pumice.Session on {self._device.name}: {ins} -> {outs}>"

    def _run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], steps: int) -> Any:
        leaves = nesting.flatten(self._in_spec, args, kwargs, self._names)
        return self._nested(self._native.run(self._arrays(leaves), self._method, _count(steps)), leaves)

    def _arrays(self, leaves: list[Any]) -> list[np.ndarray]:
        if len(leaves) != len(self.inputs):
            names = ", ".join(self._names)
            raise InvalidInputError(
                f"expected {len(self.inputs)} input(s) ({names}), got {len(leaves)}",
                code="InvalidArgument",
                stage="input",
            )
        return [_array(leaf, dtype, name) for leaf, dtype, name in zip(leaves, self._dtypes, self._names, strict=True)]

    def _nested(self, results: list[np.ndarray], leaves: list[Any]) -> Any:
        if (torch := sys.modules.get("torch")) is not None and any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            results = [torch.from_numpy(result) for result in results]
        if self._out_spec is None:
            return results[0] if len(results) == 1 else tuple(results)
        return nesting.unflatten(self._out_spec, iter(results))


def _count(steps: int) -> int:
    """`steps` of a run, if the interface's 32 bits hold it; the runtime checks the rest."""
    if isinstance(steps, bool) or not isinstance(steps, int) or not 0 <= steps < 2**32:
        raise InvalidInputError(
            f"steps must be a whole number from 1 to 4096, got {steps!r}", code="InvalidArgument", stage="api"
        )
    return steps


def _array(value: Any, dtype: np.dtype, name: str) -> np.ndarray:
    """A contiguous native-endian array over the caller's data, copied only if it must be; dtypes are not converted."""
    if (torch := sys.modules.get("torch")) is not None and isinstance(value, torch.Tensor):
        if str(value.dtype).removeprefix("torch.") != dtype.name:
            raise _bad(name, dtype, str(value.dtype).removeprefix("torch."))
        if value.is_meta:
            raise _bad(
                name, dtype, "a meta tensor, which has a shape and no data; make one with torch.empty and fill it"
            )
        try:
            value = value.detach().cpu().resolve_neg().contiguous().numpy()
        except (RuntimeError, TypeError) as error:  # a sparse or fake tensor, a subclass
            raise _bad(name, dtype, f"a tensor that is not an array of numbers ({error})") from error
    elif not isinstance(value, np.ndarray | np.generic):
        raise _bad(name, dtype, f"a {type(value).__name__}")
    array = np.asarray(value)
    if array.dtype != dtype:
        if array.dtype.newbyteorder("=") != dtype:
            raise _bad(name, dtype, str(array.dtype))
        array = array.astype(dtype)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def _bad(name: str, dtype: np.dtype, got: str) -> InvalidInputError:
    text = f"input '{name}': expected a torch tensor or numpy array of {dtype}, got {got}"
    return InvalidInputError(text, code="InvalidArgument", stage="input", path=f"input '{name}'")


def load(
    source: str | os.PathLike[str] | bytes,
    *,
    device: str | int | None = None,
    features: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    external: Mapping[str, bytes] | None = None,
    max_memory: int | None = None,
    max_seconds: float | None = None,
    warm: Iterable[Mapping[str, int | Sequence[int]]] = (),
) -> Session:
    """Loads a .pumice file (a path, or its bytes) onto a device.

    device: index, part of the name, or UUID; default $PUMICE_DEVICE, else the best GPU; a CPU driver only when named.
    features: "-coopmat,-int_dot" switches optional features off, "none" all of them; default $PUMICE_FEATURES.
    "+float_atomics" lets scatter_add, index_add and their like add f32 by atomics where the device can: faster, and
    the last bits may differ from run to run.
    cache_dir: where compiled pipelines are kept, "off" for nowhere; default $PUMICE_CACHE_DIR, else the user's cache.
    external: the bytes of constants that the file leaves out, by key.
    max_memory: bytes on the device that the weights and one session may take; default 80 % of the device's largest
    heap, on a CPU driver or an integrated GPU also of the memory that the process may use. What the file needs is
    reckoned before anything is allocated: `Session.needs`. Runs at larger shapes are held to the limit as well.
    max_seconds: of the load, and of the first run for new shapes; default 60. Neither is cut off within a step, such as
    the compiling of one kernel. The device goes on working.
    warm: runs to prepare at other sizes than those of the export, [{"seq": 16}, {"ids": (32, 128)}]: `Session.warm`.
    Raises InvalidFileError (also beyond max_memory), DeviceError (also beyond max_seconds), InvalidInputError.
    """
    if features is not None and not isinstance(features, str):
        text = f'features must be text such as "-coopmat,-int_dot", got {features!r}'
        raise InvalidInputError(text, code="InvalidArgument", path="features")
    if device is not None and (isinstance(device, bool) or not isinstance(device, str | int)):
        text = f"device must be an index, a part of a name or a UUID, got {device!r}"
        raise InvalidInputError(text, code="InvalidArgument", path="device")
    if isinstance(warm, Mapping | str) or not isinstance(warm, Iterable):
        text = f'warm must be a list of runs such as [{{"seq": 128}}], got {warm!r}'
        raise InvalidInputError(text, code="InvalidArgument", path="warm")
    where = bytes(source) if isinstance(source, bytes | bytearray | memoryview) else os.fspath(source)
    text = "" if device is None else str(device)
    cache = "" if cache_dir is None else os.fspath(cache_dir)
    budget = _limit(max_memory, "max_memory", int), float(_limit(max_seconds, "max_seconds", int | float))
    session = Session(_pumice.NativeSession(where, text, features or "", cache, dict(external or {}), *budget))
    try:
        session.warm(*warm)
    except BaseException:
        session.close()
        raise
    return session


def _limit(given: Any, name: str, kind: Any) -> Any:
    """A limit of load; 0, the runtime's word for its default, where none is given."""
    if given is None:
        return 0
    if isinstance(given, bool) or not isinstance(given, kind) or not 0 < given < 2**63:
        raise InvalidInputError(f"{name} must be positive, got {given!r}", code="InvalidArgument", path=name)
    return given


def check(source: str | os.PathLike[str] | bytes) -> None:
    """Runs the reader's four gates (header, structure, meaning, memory plan), no device. Raises InvalidFileError."""
    if isinstance(source, bytes | bytearray | memoryview):
        _pumice.check(bytes(source))
    else:
        _pumice.check_file(os.fspath(source))


def inspect(source: str | os.PathLike[str] | bytes) -> dict[str, Any]:
    """What is in a file, as data: header, methods with operators and memory plan, constants. Runs the gates first."""
    if isinstance(source, bytes | bytearray | memoryview):
        return json.loads(_pumice.inspect(bytes(source)))
    return json.loads(_pumice.inspect_file(os.fspath(source)))
