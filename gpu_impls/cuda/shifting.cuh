// The shift of the softmax family: exp(x - m) never overflows when m is the maximum, or the maximum so far.
#pragma once
#include "block.cuh"
#include "row.cuh"

// What may be subtracted: (-inf) - (-inf) is NaN, and exp(-inf - 0) = 0 is what a row of nothing weighs.
__device__ inline float subtractable(float m) { return m == -INF ? 0.0f : m; }

// What may be divided by: a row of nothing then gives 0 / 1, and has log 0.
__device__ inline float nonzero(float total) { return total == 0.0f ? 1.0f : total; }

// A part of a row as (m, l): its maximum, and the sum of exp(x - m) (Milakov and Gimelshein, 2018).
struct Shifted {
  float m, l;
};

__device__ inline Shifted from_lane_above(Shifted value, int offset) {
  return {from_lane_above(value.m, offset), from_lane_above(value.l, offset)};
}

__device__ inline Shifted exchanged(Shifted value, int distance) {
  return {exchanged(value.m, distance), exchanged(value.l, distance)};
}

struct Online {
  using Value = Shifted;
  static __device__ Shifted identity() { return {-INF, 0.0f}; }
  static __device__ Shifted merge(Shifted a, Shifted b) {
    const float m = Max::merge(a.m, b.m), shift = subtractable(m);
    return {m, a.l * expf(a.m - shift) + b.l * expf(b.m - shift)};
  }
};

__device__ inline float row_maximum(const Row &row, int n) {
  float m = Max::identity();
  for (int i = threadIdx.x; i < n; i += blockDim.x) m = Max::merge(m, row.at(i, -INF));
  return block_reduce<Max>(m);
}

// sum exp(x - shift), each thread adding every blockDim-th element.
__device__ inline float shifted_sum(const Row &row, int n, float shift) {
  float total = Sum::identity();
  for (int i = threadIdx.x; i < n; i += blockDim.x) total += expf(row.at(i, -INF) - shift);
  return block_reduce<Sum>(total);
}
