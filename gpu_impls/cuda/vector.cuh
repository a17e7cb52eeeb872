// VECTOR neighbouring elements at a time: in one 16-byte access where the layout allows it, else one by one, in the
// same order. So the bits of a result depend neither on strides nor on alignment.
#pragma once
#include "row.cuh"

constexpr int VECTOR = 16 / sizeof(Storage);

union Sixteen {
  uint4 whole;
  Storage parts[VECTOR];
};

// Whether every row of the array starts at a multiple of 16 bytes and its elements are neighbours. Decided by what all
// rows share, not by the address of one.
__device__ inline bool vectors(const Storage *data, int64 row, int64 column) {
  return column == 1 && reinterpret_cast<unsigned long long>(data) % 16 == 0 && row % VECTOR == 0;
}

// Elements i to i + VECTOR - 1 of a row, widened; how many of them lie before n is returned.
__device__ inline int load_vector(const Row &row, int i, int n, bool whole, float (&values)[VECTOR]) {
  const int count = min(VECTOR, n - i);
  if (whole && count == VECTOR) {
    Sixteen loaded;
    loaded.whole = *reinterpret_cast<const uint4 *>(row.x + i);
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) values[k] = widen(loaded.parts[k]);
  } else {
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) values[k] = k < count ? row.at(i + k, 0.0f) : 0.0f;
  }
  return count;
}

__device__ inline void store_vector(Storage *y, int64 stride, int i, int count, bool whole,
                                    const float (&values)[VECTOR]) {
  if (whole && count == VECTOR) {
    Sixteen stored;
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) store(&stored.parts[k], values[k]);
    *reinterpret_cast<uint4 *>(y + i) = stored.whole;
  } else {
#pragma unroll
    for (int k = 0; k < VECTOR; ++k)
      if (k < count) store(y + (i + k) * stride, values[k]);
  }
}
