"""The child process of :mod:`gpu_impls.isolation`: ``python -m gpu_impls.worker FD``."""

import ctypes
import signal
import sys
from multiprocessing.connection import Connection

from gpu_impls.isolation import serve

PR_SET_PDEATHSIG = 1  # prctl(2)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A kernel that never ends does not outlive whoever would have ended it.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    serve(Connection(int(sys.argv[1])))
