// One block a row: what the generated kernels of oracles/arithmetics/fused.py are made of. BLOCK, its threads, is a
// power of two.
#pragma once
#include "compare.cuh"

#ifndef WARP
#define WARP 32
#endif
#define ALL_LANES 0xffffffffu

// One for all that is reduced, so that shared memory holds the bins too.
__device__ inline unsigned char *block_scratch() {
  __shared__ __align__(16) unsigned char raw[BLOCK * sizeof(Statistics)];
  return raw;
}

template <class T, class Merge>
__device__ T block_reduce(T value, Merge both) {
  T *scratch = reinterpret_cast<T *>(block_scratch());
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

__device__ inline double sum_over_block(double v) {
  return block_reduce(v, [](double a, double b) { return add(a, b); });
}

__device__ inline double max_over_block(double v) {
  return block_reduce(v, [](double a, double b) { return larger(a, b); });
}

__device__ inline Statistics merge_over_block(Statistics v) {
  return block_reduce(v, [](Statistics a, Statistics b) { return merge(a, b); });
}

struct Weighted {
  double x, s;
};

// sum_j s_j #(strict running maxima after j), the row read from one end; the first element is none. Each warp reads a
// stretch of the row, its lanes neighbours. A new maximum is rare, and what comes after the last one counts nothing.
template <class At>
__device__ double rescaled_from(int n, bool last_first, const At &at) {
  __shared__ double tops[BLOCK / WARP];
  __shared__ int counts[BLOCK / WARP];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, length = (n + BLOCK - 1) / BLOCK * WARP;
  const int start = warp * length, stop = n < start + length ? n : start + length;
  const auto element = [&](int i) { return at(last_first ? n - 1 - i : i); };

  double top = -INFINITY;
  for (int i = start + lane; i < stop; i += WARP) top = fmax(top, element(i).x);
  for (int apart = WARP / 2; apart > 0; apart /= 2) top = fmax(top, __shfl_xor_sync(ALL_LANES, top, apart));
  if (lane == 0) tops[warp] = top;
  __syncthreads();
  double running = -INFINITY, last = -INFINITY;
  for (int k = 0; k < BLOCK / WARP; ++k) {
    if (k < warp) running = fmax(running, tops[k]);
    last = fmax(last, tops[k]);
  }

  int seen = 0;  // maxima in this warp's stretch
  double weight = 0, before = 0;
  for (int base = start; base < stop && running < last; base += WARP) {
    const int i = base + lane;
    const Weighted w = i < stop ? element(i) : Weighted{-INFINITY, 0};
    int upto = seen;
    if (__any_sync(ALL_LANES, w.x > running)) {
      double highest = w.x;
      for (int apart = 1; apart < WARP; apart *= 2) {
        const double other = __shfl_up_sync(ALL_LANES, highest, apart);
        if (lane >= apart) highest = fmax(highest, other);
      }
      const double left = __shfl_up_sync(ALL_LANES, highest, 1);
      const unsigned news = __ballot_sync(ALL_LANES, i > 0 && w.x > (lane > 0 ? fmax(left, running) : running));
      upto += __popc(news & ((2u << lane) - 1));
      seen += __popc(news);
      running = fmax(running, __shfl_sync(ALL_LANES, highest, WARP - 1));
    }
    weight += w.s;
    before += w.s * upto;
  }
  if (lane == 0) counts[warp] = seen;
  __syncthreads();
  int earlier = 0, all = 0;
  for (int k = 0; k < BLOCK / WARP; ++k) {
    if (k < warp) earlier += counts[k];
    all += counts[k];
  }
  return sum_over_block(weight * (all - earlier) - before);
}

template <class At>
__device__ double rescaled_over_row(int n, const At &at) {
  return fmax(rescaled_from(n, false, at), rescaled_from(n, true, at));
}
