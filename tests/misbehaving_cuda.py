"""CUDA kernels that hang, or take the device down, each in its own way; and sums beyond 2^31 elements. Loaded with
``--impls`` by tests/test_cuda_misbehaving.py."""

import functools

import cupy

from gpu_impls import implementation
from gpu_impls.cuda.kernels import BLOCK
from gpu_impls.cuda.launch import Kernel, masked_arguments, reduce_rows
from gpu_impls.cuda.sum import block_tree

on_gpu = functools.partial(implementation, "sum", dtypes=("float32",), backend="cupy")


@functools.cache
def compiled(body):
    source = 'extern "C" __global__ void kernel(float *x, float *out, int n) { ' + body + " }"
    return cupy.RawKernel(source, "kernel")


def run(x, body, block=256):
    """The right result first; then a kernel that spoils it."""
    out = block_tree(x)
    compiled(body)((1,), (block,), (x, out, x.shape[1]))
    return out


@on_gpu()
def stores_out_of_bounds(x):
    """Two terabytes past the end."""
    return run(x, "out[(1ll << 39) + threadIdx.x] = 1.0f;")


@on_gpu()
def traps(x):
    return run(x, "__trap();")


@on_gpu()
def reads_an_illegal_address(x):
    return run(x, "out[0] += *reinterpret_cast<float *>(16);")


@on_gpu()
def exhausts_memory(x):
    kept = []
    while True:
        kept.append(cupy.empty(2**33, cupy.uint8))


@on_gpu()
def asks_for_too_large_a_block(x):
    """An error of the launch: nothing ran, and the device is as it was."""
    return run(x, "", block=2048)


@on_gpu()
def stores_beyond_its_end(x, out):
    """Into the guard words: 32 of them."""
    reduce_rows(Kernel("sum", "sum", BLOCK, flush=False), x, None, out)
    compiled("out[n + threadIdx.x] = 1.0f;")((1,), (32,), (x, out, x.shape[0]))
    return out


@on_gpu()
def loops_for_ever(x):
    return run(x, "while (*reinterpret_cast<volatile float *>(out) == *reinterpret_cast<volatile float *>(out)) {}")


@on_gpu()
def hangs_in_the_second_level(x):
    """The second level is entered by num_warps lanes, under a mask that names all 32."""
    return run(
        x,
        """
        __shared__ float s_sum[32];
        float total = 0.0f;
        for (int i = threadIdx.x; i < n; i += blockDim.x) total += x[i];
        for (int offset = 16; offset > 0; offset /= 2) total += __shfl_down_sync(0xffffffffu, total, offset);
        if (threadIdx.x % 32 == 0) s_sum[threadIdx.x / 32] = total;
        __syncthreads();
        if (threadIdx.x < blockDim.x / 32) {
          total = s_sum[threadIdx.x];
          for (int offset = 16; offset > 0; offset /= 2) total += __shfl_down_sync(0xffffffffu, total, offset);
          if (threadIdx.x == 0) out[0] = total;
        }
        __syncthreads();
        """,
    )


@on_gpu()
def well_behaved(x):
    return block_tree(x)


def at_the_end_of_more_than_2_31_elements(x, launch):
    """The sums of the rows of ``x`` as the last rows of an array of 16,385 rows or more of 131,072."""
    rows, n = x.shape
    many = 2**31 // n + rows
    large = cupy.zeros((many, n), x.dtype)
    large[-rows:] = x
    out = cupy.zeros(many, x.dtype)
    launch(large, out)
    return out[-rows:].copy()


@implementation("sum", dtypes=("float16",), backend="cupy", min_length=131_072)
def offset_in_64_bits(x):
    return at_the_end_of_more_than_2_31_elements(x, lambda large, out: block_tree(large, out=out))


@implementation("sum", dtypes=("float16",), backend="cupy", min_length=131_072)
def offset_in_32_bits(x):
    def launch(large, out):
        arguments = masked_arguments(large, None, out, axes=1)
        Kernel("faulty", "offset_in_32_bits", BLOCK, flush=False).launch(large, arguments)

    return at_the_end_of_more_than_2_31_elements(x, launch)
