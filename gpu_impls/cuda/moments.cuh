// Mean and sum of squared differences of a part of a row, one element at a time (Welford, 1962), and of two parts
// together (Chan, Golub and LeVeque, 1983).
#pragma once
#include "block.cuh"

struct Partial {
  float count, mean, m2;
};

__device__ inline Partial from_lane_above(Partial value, int offset) {
  return {from_lane_above(value.count, offset), from_lane_above(value.mean, offset),
          from_lane_above(value.m2, offset)};
}

struct Moments {
  using Value = Partial;
  static __device__ Partial identity() { return {0.0f, 0.0f, 0.0f}; }

  static __device__ Partial extend(Partial a, float value) {
    const float count = a.count + 1.0f, before = value - a.mean, mean = a.mean + before / count;
    return {count, mean, a.m2 + before * (value - mean)};
  }

  // Either may be empty.
  static __device__ Partial merge(Partial a, Partial b) {
    const float count = a.count + b.count, share = count == 0.0f ? 0.0f : b.count / count, apart = b.mean - a.mean;
    return {count, a.mean + apart * share, a.m2 + b.m2 + apart * apart * (a.count * share)};
  }
};
