// Reductions within a block of 32 to 1,024 threads, a multiple of 32.
#pragma once
#include "warp.cuh"

// Merges one value a thread; every thread gets the result. Warps first, then the whole first warp over their results,
// padded with the identity. May be called again and again: the last barrier keeps a fast warp from writing into scratch
// what a slow one has yet to read.
template <class Monoid>
__device__ typename Monoid::Value block_reduce(typename Monoid::Value value) {
  using Value = typename Monoid::Value;
  __shared__ Value scratch[WARP];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  value = warp_reduce<Monoid>(value);
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = warp_reduce<Monoid>(lane < warps ? scratch[lane] : Monoid::identity());
    if (lane == 0) scratch[0] = value;
  }
  __syncthreads();
  const Value result = scratch[0];
  __syncthreads();
  return result;
}
