"""Calls an implementation on cases, saying which: ``python -m reports.sanitizer.child ORIGIN OP NAME CASE...``.

Beneath compute-sanitizer every array gets memory of its own from the driver: a pool's large block would hide that a
kernel reads or writes past the end of an array.
"""

import sys

from gpu_impls.backends import CUPY as cupy
from gpu_impls.call import call
from gpu_impls.isolation import load_what_it_needs
from gpu_impls.registry import find
from properties.case import Case
from reports.sanitizer.log import BEGINS, ENDS

# The same for PyTorch and JAX.
ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}


def main(origin: str, op: str, name: str, *cases: str) -> None:
    implementation = find(origin, op, name)
    load_what_it_needs(implementation)
    if implementation.contract.backend == "cupy":
        cupy.cuda.set_allocator(None)
    for case in cases:
        inputs = Case.parse(case).inputs
        print(f"{BEGINS}{case}", flush=True)
        run = call(implementation, inputs)
        told = f"{run.reason}: {run.detail}" if run.reason else ""
        print(f"{ENDS}{case}\t{' '.join(told.split())}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
