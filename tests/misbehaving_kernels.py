"""Kernels that take their process down, each in its own way: loaded with ``--impls`` by the tests of isolation."""

import ctypes
import os
import subprocess
import sys
import time

import numpy as np

from gpu_impls import implementation


def total(x):
    return x.sum(axis=-1)


@implementation("sum", dtypes=("float32",))
def well_behaved(x):
    return total(x)


@implementation("sum", dtypes=("float32",))
def spins(x):
    while True:
        pass


@implementation("sum", dtypes=("float32",))
def sleeps_deaf_to_signals(x):
    import signal

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(3600)


@implementation("sum", dtypes=("float32",))
def exits(x):
    os._exit(3)


@implementation("sum", dtypes=("float32",))
def segfaults(x):
    ctypes.string_at(0)


@implementation("sum", dtypes=("float32",))
def aborts(x):
    os.abort()


@implementation("sum", dtypes=("float32",))
def exhausts_memory(x):
    kept = []
    while True:
        kept.append(np.ones(2**22))


@implementation("sum", dtypes=("float32",))
def closes_file_descriptors(x):
    os.closerange(0, 256)
    return total(x)


@implementation("sum", dtypes=("float32",))
def forks(x):
    """Both processes go on and return the right result."""
    os.fork()
    return total(x)


@implementation("sum", dtypes=("float32",))
def leaves_a_process_behind(x):
    subprocess.Popen([sys.executable, "-c", f"import time; time.sleep(3600)  # {os.environ.get('LEFT_BEHIND')}"])
    while True:
        pass


@implementation("sum", dtypes=("float32",))
def prints_gigabytes(x):
    line = "x" * 2**20
    for _ in range(1024):
        os.write(1, line.encode())
        os.write(2, line.encode())
    return total(x)


@implementation("sum", dtypes=("float32",))
def leaves_by_system_exit(x):
    sys.exit(5)


@implementation("sum", dtypes=("float32",))
def crashes_at_length_64(x):
    if x.shape[-1] == 64:
        os._exit(1)
    return total(x)
