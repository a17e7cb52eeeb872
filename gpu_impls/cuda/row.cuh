// One row of a strided array, and of its mask. Strides count elements; offsets are 64-bit, for rows * n may exceed 2^31.
#pragma once
#include "storage.cuh"

struct Row {
  const Storage *x;
  int64 stride;
  const bool *mask;  // null: everything takes part
  int64 mask_stride;

  __device__ bool shows(int i) const { return mask == nullptr || mask[i * mask_stride]; }

  // Element i, or `hidden` where the mask hides it: replaced, never multiplied, since 0 * NaN is NaN.
  __device__ float at(int i, float hidden) const { return shows(i) ? widen(x[i * stride]) : hidden; }
};

// The row of this block: one block a row.
__device__ inline Row row_of_block(const Storage *x, int64 x_row, int64 x_column, const bool *mask = nullptr,
                                   int64 mask_row = 0, int64 mask_column = 0) {
  const int64 r = blockIdx.x;
  return {x + r * x_row, x_column, mask == nullptr ? nullptr : mask + r * mask_row, mask_column};
}
