// layer_norm: (x - mean) / sqrt(var + eps) * weight + bias, moments in two passes or by Welford. Mean and reciprocal
// standard deviation of each row go out as float32 where a place for them is given. out may be x. A row with NaN or an
// infinity gives NaN throughout: inf - inf.
#include "affine.cuh"
#include "moments.cuh"
#include "vector.cuh"

__device__ void write_statistics(float mean, float rstd, float *means, float *rstds) {
  if (threadIdx.x == 0 && means != nullptr) means[blockIdx.x] = mean;
  if (threadIdx.x == 0 && rstds != nullptr) rstds[blockIdx.x] = rstd;
}

// The mean, then the variance about it, then the output.
extern "C" __global__ void __launch_bounds__(1024)
    two_pass(const Storage *x, int64 x_row, int64 x_column, const Storage *weight, int64 weight_stride,
             const Storage *bias, int64 bias_stride, Storage *out, int64 out_row, int64 out_column, float *means,
             float *rstds, float eps, int n) {
  const Row row = row_of_block(x, x_row, x_column);
  const Affine affine = {weight, weight_stride, bias, bias_stride};
  float total = Sum::identity(), squares = Sum::identity();
  for (int i = threadIdx.x; i < n; i += blockDim.x) total += row.at(i, 0.0f);
  const float mean = block_reduce<Sum>(total) / n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float difference = row.at(i, 0.0f) - mean;
    squares += difference * difference;
  }
  const float rstd = rsqrtf(block_reduce<Sum>(squares) / n + eps);
  write_statistics(mean, rstd, means, rstds);
  Storage *y = out + blockIdx.x * out_row;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    store(y + i * out_column, affine.apply((row.at(i, 0.0f) - mean) * rstd, i));
}

// Mean and variance in one reading: Welford in each thread, partial moments merged by shuffles and across warps.
// 16-byte accesses wherever rows are contiguous and aligned.
extern "C" __global__ void __launch_bounds__(1024)
    welford(const Storage *x, int64 x_row, int64 x_column, const Storage *weight, int64 weight_stride,
            const Storage *bias, int64 bias_stride, Storage *out, int64 out_row, int64 out_column, float *means,
            float *rstds, float eps, int n) {
  const Row row = row_of_block(x, x_row, x_column);
  const Affine affine = {weight, weight_stride, bias, bias_stride};
  const bool load_whole = vectors(x, x_row, x_column), store_whole = vectors(out, out_row, out_column);
  float values[VECTOR];
  Partial part = Moments::identity();
  for (int i = threadIdx.x * VECTOR; i < n; i += blockDim.x * VECTOR) {
    const int count = load_vector(row, i, n, load_whole, values);
#pragma unroll
    for (int k = 0; k < VECTOR; ++k)
      if (k < count) part = Moments::extend(part, values[k]);
  }
  part = block_reduce<Moments>(part);
  const float mean = part.mean, rstd = rsqrtf(part.m2 / n + eps);
  write_statistics(mean, rstd, means, rstds);
  Storage *y = out + blockIdx.x * out_row;
  for (int i = threadIdx.x * VECTOR; i < n; i += blockDim.x * VECTOR) {
    const int count = load_vector(row, i, n, load_whole, values);
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) values[k] = k < count ? affine.apply((values[k] - mean) * rstd, i + k) : 0.0f;
    store_vector(y, out_column, i, count, store_whole, values);
  }
}
