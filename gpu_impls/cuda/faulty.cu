// Right kernels with one fault each, as they are really made. The harness has to catch every one.
#include "affine.cuh"
#include "moments.cuh"
#include "shifting.cuh"

#define ROWS_IN                                                                                                       \
  const Storage *x, int64 x_row, int64 x_column, const bool *mask, int64 mask_row, int64 mask_column, Storage *out
#define ROW row_of_block(x, x_row, x_column, mask, mask_row, mask_column)
#define NORM_IN                                                                                                       \
  const Storage *x, int64 x_row, int64 x_column, const Storage *weight, int64 weight_stride, const Storage *bias,     \
      int64 bias_stride, Storage *out, int64 out_row, int64 out_column, float eps, int n

__device__ void write_norm(const Row &row, int n, float mean, float rstd, const Affine &affine, Storage *y,
                           int64 stride) {
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    store(y + i * stride, affine.apply((row.at(i, 0.0f) - mean) * rstd, i));
}

__device__ void write_softmax(const Row &row, int n, float m, float total, Storage *y, int64 stride) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) store(y + i * stride, expf(row.at(i, -INF) - m) / total);
}

// Each thread's part of the sum.
__device__ float own_sum(const Row &row, int n, float shift) {
  float total = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) total += expf(row.at(i, -INF) - shift);
  return total;
}

// The second level's result is broadcast by a shuffle, which reaches warp 0 alone; the others keep their own part.
__device__ float sum_for_warp_0(float value) {
  __shared__ float scratch[WARP];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  value = warp_reduce<Sum>(value);
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  if (warp == 0) value = warp_reduce<Sum>(lane < blockDim.x / WARP ? scratch[lane] : 0.0f);
  return __shfl_sync(ALL_LANES, value, 0);
}

extern "C" __global__ void __launch_bounds__(1024)
    shuffle_broadcast(ROWS_IN, int64 out_row, int64 out_column, int n) {
  const Row row = ROW;
  const float m = subtractable(row_maximum(row, n));
  const float total = nonzero(sum_for_warp_0(own_sum(row, n, m)));
  write_softmax(row, n, m, total, out + blockIdx.x * out_row, out_column);
}

// Every lane of every warp writes s_sum[0]: whichever comes last wins, and most lanes hold a part of a part.
extern "C" __global__ void __launch_bounds__(1024) one_slot(ROWS_IN, int64 out_row, int n) {
  __shared__ float s_sum[1];
  const Row row = ROW;
  float total = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) total += row.at(i, 0.0f);
  s_sum[0] = warp_reduce<Sum>(total);
  __syncthreads();
  if (threadIdx.x == 0) store(out + blockIdx.x * out_row, s_sum[0]);
}

// 0 is not the identity of a maximum: a row of negative numbers gives 0.
extern "C" __global__ void __launch_bounds__(1024) identity_zero(ROWS_IN, int64 out_row, int n) {
  const Row row = ROW;
  float m = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) m = Max::merge(m, row.at(i, -INF));
  m = block_reduce<Max>(m);
  if (threadIdx.x == 0) store(out + blockIdx.x * out_row, m);
}

// block_reduce without its last barrier, over scratch that the caller uses again. The last warp comes late to read the
// result, as a warp may; the others have by then written the parts of the next reduction there.
template <class Monoid>
__device__ float reduce_without_last_barrier(float value, float *scratch) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  value = warp_reduce<Monoid>(value);
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = warp_reduce<Monoid>(lane < warps ? scratch[lane] : Monoid::identity());
    if (lane == 0) scratch[0] = value;
  }
  __syncthreads();
  if (warp == warps - 1) __nanosleep(20000);
  return *static_cast<volatile float *>(scratch);
}

extern "C" __global__ void __launch_bounds__(1024)
    missing_barrier(ROWS_IN, int64 out_row, int64 out_column, int n) {
  __shared__ float scratch[WARP];
  const Row row = ROW;
  float m = -INF;
  for (int i = threadIdx.x; i < n; i += blockDim.x) m = Max::merge(m, row.at(i, -INF));
  m = subtractable(reduce_without_last_barrier<Max>(m, scratch));
  const float total = nonzero(reduce_without_last_barrier<Sum>(own_sum(row, n, m), scratch));
  write_softmax(row, n, m, total, out + blockIdx.x * out_row, out_column);
}

// Each thread divides by its own part of the sum.
extern "C" __global__ void __launch_bounds__(1024)
    sum_not_reduced(ROWS_IN, int64 out_row, int64 out_column, int n) {
  const Row row = ROW;
  const float m = subtractable(row_maximum(row, n));
  write_softmax(row, n, m, nonzero(own_sum(row, n, m)), out + blockIdx.x * out_row, out_column);
}

// The elements after the last multiple of four are never written.
extern "C" __global__ void __launch_bounds__(1024)
    tail_not_written(ROWS_IN, int64 out_row, int64 out_column, int n) {
  const Row row = ROW;
  const float m = subtractable(row_maximum(row, n));
  const float total = nonzero(shifted_sum(row, n, m));
  write_softmax(row, n / 4 * 4, m, total, out + blockIdx.x * out_row, out_column);
}

// When a maximum is outdone, what was summed below it is not rescaled.
struct WithoutRescale {
  using Value = Shifted;
  static __device__ Shifted identity() { return Online::identity(); }
  static __device__ Shifted merge(Shifted a, Shifted b) { return {Max::merge(a.m, b.m), a.l + b.l}; }
};

extern "C" __global__ void __launch_bounds__(1024)
    rescale_lost(ROWS_IN, int64 out_row, int64 out_column, int n) {
  const Row row = ROW;
  Shifted whole = Online::identity();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float value = row.at(i, -INF);
    whole = WithoutRescale::merge(whole, {value, expf(value - subtractable(value))});
  }
  whole = block_reduce<WithoutRescale>(whole);
  write_softmax(row, n, subtractable(whole.m), nonzero(whole.l), out + blockIdx.x * out_row, out_column);
}

// Lanes beyond the end load the last element, which is safe, and add it, which is not.
extern "C" __global__ void __launch_bounds__(1024) tail_lanes_add(ROWS_IN, int64 out_row, int n) {
  const Row row = ROW;
  float total = 0.0f;
  for (int i = threadIdx.x; i < (n + WARP - 1) / WARP * WARP; i += blockDim.x) total += row.at(min(i, n - 1), 0.0f);
  total = block_reduce<Sum>(total);
  if (threadIdx.x == 0) store(out + blockIdx.x * out_row, total);
}

// rows * n in 32 bits: wrong from 2^31 elements on.
extern "C" __global__ void __launch_bounds__(1024) offset_in_32_bits(ROWS_IN, int64 out_row, int n) {
  const int first = int(blockIdx.x) * n;
  const Row row = {x + first, x_column, nullptr, 0};
  float total = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) total += row.at(i, 0.0f);
  total = block_reduce<Sum>(total);
  if (threadIdx.x == 0) store(out + blockIdx.x * out_row, total);
}

// The moments of warp 0 stand for the whole row's.
extern "C" __global__ void __launch_bounds__(1024) moments_not_combined(NORM_IN) {
  __shared__ Partial scratch[WARP];
  const Row row = row_of_block(x, x_row, x_column);
  Partial part = Moments::identity();
  for (int i = threadIdx.x; i < n; i += blockDim.x) part = Moments::extend(part, row.at(i, 0.0f));
  part = warp_reduce<Moments>(part);
  if (threadIdx.x % WARP == 0) scratch[threadIdx.x / WARP] = part;
  __syncthreads();
  part = scratch[0];
  write_norm(row, n, part.mean, rsqrtf(part.m2 / part.count + eps), {weight, weight_stride, bias, bias_stride},
             out + blockIdx.x * out_row, out_column);
}

// The variance as E[x^2] - E[x]^2 cancels when the mean is large beside the spread.
extern "C" __global__ void __launch_bounds__(1024) squares_of_mean(NORM_IN) {
  const Row row = row_of_block(x, x_row, x_column);
  float total = 0.0f, squares = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float value = row.at(i, 0.0f);
    total += value;
    squares += value * value;
  }
  const float mean = block_reduce<Sum>(total) / n, variance = block_reduce<Sum>(squares) / n - mean * mean;
  write_norm(row, n, mean, rsqrtf(variance + eps), {weight, weight_stride, bias, bias_stride},
             out + blockIdx.x * out_row, out_column);
}
