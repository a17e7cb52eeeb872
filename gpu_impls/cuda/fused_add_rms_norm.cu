// The residual of a transformer's block and its norm in one kernel: s = x + residual; updated = s, rounded to storage;
// y = s / sqrt(mean(s^2) + eps) * weight. With `rounded`, s is what was stored; without, the float32 sum. Nothing is
// written before the last reading of its place: out may be x, and updated the residual.
#include "affine.cuh"
#include "block.cuh"
#include "row.cuh"

__device__ float seen(float sum, int rounded) {
  if (!rounded) return sum;
  Storage stored;
  store(&stored, sum);
  return widen(stored);
}

extern "C" __global__ void __launch_bounds__(1024)
    fused_add_rms_norm(const Storage *x, int64 x_row, int64 x_column, const Storage *residual, int64 residual_row,
                       int64 residual_column, const Storage *weight, int64 weight_stride, Storage *out, int64 out_row,
                       int64 out_column, Storage *updated, int64 updated_row, int64 updated_column, float eps,
                       int rounded, int n) {
  const Row a = row_of_block(x, x_row, x_column), b = row_of_block(residual, residual_row, residual_column);
  const Affine affine = {weight, weight_stride, nullptr, 0};
  float squares = Sum::identity();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float s = seen(a.at(i, 0.0f) + b.at(i, 0.0f), rounded);
    squares += s * s;
  }
  const float reciprocal = rsqrtf(block_reduce<Sum>(squares) / n + eps);
  Storage *y = out + blockIdx.x * out_row, *z = updated + blockIdx.x * updated_row;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float sum = a.at(i, 0.0f) + b.at(i, 0.0f);
    store(z + i * updated_column, sum);
    store(y + i * out_column, affine.apply(seen(sum, rounded) * reciprocal, i));
  }
}
