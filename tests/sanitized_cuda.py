"""CUDA kernels with one fault each that a tool of compute-sanitizer is made for, and one that never ends. Loaded with
``--impls`` by tests/test_sanitize_device.py; most give the right result all the same."""

import functools

import cupy

from gpu_impls import implementation

on_gpu = functools.partial(implementation, "sum", dtypes=("float32",), backend="cupy")

# One thread a row where that will do, so that each fault stands alone.
SOURCE = r"""
extern "C" __global__ void reads_past_its_end(const float *x, float *out, int n) {
  float total = 0.0f;
  for (int i = 0; i <= n; ++i) {
    const float value = x[blockIdx.x * n + i];
    if (i < n) total += value;
  }
  out[blockIdx.x] = total;
}

extern "C" __global__ void adds_to_what_was_there(const float *x, float *out, int n) {
  float total = 0.0f;
  for (int i = 0; i < n; ++i) total += x[blockIdx.x * n + i];
  out[blockIdx.x] = out[blockIdx.x] * 0.0f + total;
}

extern "C" __global__ void no_barrier(const float *x, float *out, int n) {
  __shared__ float parts[64];
  float total = 0.0f;
  for (int i = threadIdx.x; i < n; i += 64) total += x[blockIdx.x * n + i];
  parts[threadIdx.x] = total;
  if (threadIdx.x == 0) {
    total = 0.0f;
    for (int k = 0; k < 64; ++k) total += parts[k];
    out[blockIdx.x] = total;
  }
}

extern "C" __global__ void barrier_in_a_branch(const float *x, float *out, int n) {
  float total = 0.0f;
  for (int i = 0; i < n; ++i) total += x[blockIdx.x * n + i];
  if (threadIdx.x < 40) __syncthreads();
  __syncwarp();
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

extern "C" __global__ void never_ends(const float *x, float *out, int n) {
  while (*reinterpret_cast<volatile float *>(out) == *reinterpret_cast<volatile float *>(out)) {
  }
}
"""


@functools.cache
def module():
    return cupy.RawModule(code=SOURCE)


def launched(name, x, threads):
    x = cupy.ascontiguousarray(x)
    out = cupy.empty(x.shape[:1], x.dtype)
    module().get_function(name)((x.shape[0],), (threads,), (x, out, cupy.int32(x.shape[1])))
    return out


@on_gpu()
def reads_past_its_end(x):
    """memcheck."""
    return launched("reads_past_its_end", x, 1)


@on_gpu()
def adds_to_what_was_there(x):
    """initcheck."""
    return launched("adds_to_what_was_there", x, 1)


@on_gpu()
def no_barrier(x):
    """racecheck."""
    return launched("no_barrier", x, 64)


@on_gpu()
def barrier_in_a_branch(x):
    """synccheck."""
    return launched("barrier_in_a_branch", x, 64)


@on_gpu()
def never_ends(x):
    """None of them: a hang."""
    return launched("never_ends", x, 1)
