"""Runs work in many threads at once, for the tests."""

import threading
from collections.abc import Callable


def in_threads(work: Callable[[int], None], threads: int = 8) -> None:
    """Run `work(number)` in so many threads; each has to end, and without an error."""
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # shown by the assertion below
            errors.append(error)

    running = [threading.Thread(target=guarded, args=(n,)) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(timeout=60)
    assert not errors
    assert not any(thread.is_alive() for thread in running)
