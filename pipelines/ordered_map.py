"""A function over a stream, in several processes, with the results in the order of the stream."""

import collections
import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

Map = Callable[[Callable[[T], U], Iterable[T]], Iterator[U]]

_AHEAD = 2  # items a process that are read before their turn


@contextlib.contextmanager
def ordered_map(num_processes: int, preload: str, initialize: Callable[[], None]) -> Iterator[Map]:
    """Gives a `map` that works in so many processes, or in this one if it is one.

    A few items a process are taken from the stream ahead, no more, so an endless stream needs little memory. The
    processes are forked from one that has imported `preload` and nothing else, so they start at once and hold none of
    the threads and locks of this one. They end with this one, even if it is killed.

    Args:
        num_processes: How many.
        preload: Name of the module that the functions come from.
        initialize: Called first in each process; not if it is this one.

    Yields:
        A function as `map`, for functions and items that can be pickled. What it yields is the same for any number of
        processes; so is the error, if the stream or the function ends in one: the first in the order of the stream.

    Raises:
        OSError: A process was killed.
    """
    if num_processes == 1:
        yield map
        return
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preload])
    executor = concurrent.futures.ProcessPoolExecutor(
        num_processes, mp_context=context, initializer=_start_process, initargs=(initialize,)
    )

    def parallel_map(function, stream):
        waiting, error = collections.deque(), None
        stream = iter(stream)
        while True:
            try:
                waiting.append(executor.submit(function, next(stream)))
            except StopIteration:
                break
            except Exception as caught:  # comes after the results of what was read before it
                error = caught
                break
            if len(waiting) > _AHEAD * num_processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
        if error:
            raise error

    try:
        yield parallel_map
    except BrokenProcessPool as error:
        raise OSError(
            "A process that splits text into pieces was killed; was there not enough memory? Try fewer "
            f"`num_processes`. Received: num_processes={num_processes}"
        ) from error
    finally:
        executor.shutdown(cancel_futures=True)


def _start_process(initialize: Callable[[], None]):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's
    threading.Thread(target=_end_with_parent, daemon=True).start()
    initialize()


def _end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)
