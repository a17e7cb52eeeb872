"""The child process of :mod:`gpu_impls.isolation`: ``python -m gpu_impls.worker FD PARENT``."""

import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection

from gpu_impls.isolation import serve

LOOK_EVERY = 0.5


def outlive_nobody(parent: int) -> None:
    """A kernel that never ends does not outlive whoever would have ended it; nor does what it started."""
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=outlive_nobody, args=(int(sys.argv[2]),), daemon=True).start()
    serve(Connection(int(sys.argv[1])))
