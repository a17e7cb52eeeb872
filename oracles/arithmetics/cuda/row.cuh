// One block a row: what the generated kernels of oracles/arithmetics/fused.py are made of. BLOCK, its threads, is a
// power of two.
#pragma once
#include "compare.cuh"

template <class T, class Merge>
__device__ T block_reduce(T value, Merge both) {
  __shared__ __align__(16) unsigned char raw[BLOCK * sizeof(T)];
  T *scratch = reinterpret_cast<T *>(raw);
  __syncthreads();  // whoever reads the last result is done
  scratch[threadIdx.x] = value;
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) scratch[threadIdx.x] = both(scratch[threadIdx.x], scratch[threadIdx.x + half]);
  }
  __syncthreads();
  return scratch[0];
}

__device__ inline Words sum_over_block(Words v) {
  return block_reduce(v, [](Words a, Words b) { return add(a, b); });
}

__device__ inline Words max_over_block(Words v) {
  return block_reduce(v, [](Words a, Words b) { return larger(a, b); });
}

__device__ inline Statistics merge_over_block(Statistics v) {
  return block_reduce(v, [](Statistics a, Statistics b) { return merge(a, b); });
}
