"""Tasks for worker processes, which must be able to import them."""

import os


def add(shared, item):
    return shared + item


def pid_of(item):
    return os.getpid()


def threads_of(item):
    from threadpoolctl import threadpool_info

    return max(pool["num_threads"] for pool in threadpool_info())


class Thing:
    """What only a pickle can hold."""


def an_object(item):
    return Thing()
