// Reductions within a warp. What is reduced is a monoid: a Value, an identity, and a merge of what lies left and right.
#pragma once
#include "storage.cuh"

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

__device__ inline float from_lane_above(float value, int offset) {
  return __shfl_down_sync(ALL_LANES, value, offset);
}

__device__ inline float exchanged(float value, int distance) { return __shfl_xor_sync(ALL_LANES, value, distance); }

struct Sum {
  using Value = float;
  static __device__ float identity() { return 0.0f; }
  static __device__ float merge(float a, float b) { return a + b; }
};

// NaN wins wherever it stands (IEEE 754-2019 maximum): fmaxf would lose it.
struct Max {
  using Value = float;
  static __device__ float identity() { return -INF; }
  static __device__ float merge(float a, float b) { return a != a ? a : (b > a || b != b) ? b : a; }
};

// Lane 0 gets the merge of all 32 values, by distances of 16, 8, 4, 2, 1; the other lanes get parts of it. Every lane
// of the warp has to take part: a shuffle waits for all whom its mask names.
template <class Monoid>
__device__ typename Monoid::Value warp_reduce(typename Monoid::Value value) {
#pragma unroll
  for (int offset = WARP / 2; offset > 0; offset /= 2) value = Monoid::merge(value, from_lane_above(value, offset));
  return value;
}

// Every lane gets the merge of the values of its LANES neighbours (a power of two), itself among them, and all of them
// the same bits: what a lane merges with its partner's, the partner merges with its own, and merges commute.
template <class Monoid, int LANES = WARP>
__device__ typename Monoid::Value warp_all_reduce(typename Monoid::Value value) {
#pragma unroll
  for (int distance = LANES / 2; distance > 0; distance /= 2)
    value = Monoid::merge(value, exchanged(value, distance));
  return value;
}
