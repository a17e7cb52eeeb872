"""The child process of :mod:`gpu_impls.isolation`: ``python -m gpu_impls.worker FD``."""

import signal
import sys
from multiprocessing.connection import Connection

from gpu_impls.isolation import serve

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Connection(int(sys.argv[1])))
