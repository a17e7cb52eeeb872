// softmax with the row in registers: maximum, exponentials and their sum, output. Rows longer than a tile are read
// twice: maximum and sum in one reading, then the output. out may be x.
#include "resident.cuh"
#include "shifting.cuh"

// fmaxf ignores NaN. It comes back in the sum, and so in every element.
struct Largest {
  using Value = float;
  static __device__ float identity() { return -INF; }
  static __device__ float merge(float a, float b) { return fmaxf(a, b); }
};

// e / total to half a unit and a trace: a product with the reciprocal, corrected by its remainder.
__device__ inline float divided(float e, float total, float reciprocal) {
  const float quotient = e * reciprocal;
  return fmaf(fmaf(-quotient, total, e), reciprocal, quotient);
}

__device__ inline float largest_of(const Tile &tile) {
  return tile.reduce<Largest>([](float x) { return x; });
}

__device__ void resident(const Row &row, Storage *y, int64 stride, int n, Storage hidden) {
  Tile tile;
  tile.load(row, 0, n, hidden);
  const float m = subtractable(block_all_reduce<Largest>(largest_of(tile)));
  float e[ITEMS][VECTOR], parts[ITEMS];
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    float values[VECTOR];
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) values[k] = e[item][k] = expf(tile.at(item, k) - m);
    parts[item] = pairwise<Sum>(values);
  }
  const float total = nonzero(block_all_reduce<Sum>(pairwise<Sum>(parts))), reciprocal = 1.0f / total;
  tile.write(y, stride, n, [&](int item, float(&values)[VECTOR]) {
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) values[k] = divided(e[item][k], total, reciprocal);
  });
}

__device__ void streamed(const Row &row, Storage *y, int64 stride, int n, Storage hidden) {
  Tile tile;
  Shifted whole = Online::identity();
#pragma unroll 1
  for (int t = 0; t < TILES; ++t) {
    tile.load(row, t, n, hidden);
    const float m = largest_of(tile), shift = subtractable(m);
    whole = Online::merge(whole, {m, tile.reduce<Sum>([&](float x) { return expf(x - shift); })});
  }
  whole = block_all_reduce<Online>(whole);
  const float m = subtractable(whole.m), total = nonzero(whole.l), reciprocal = 1.0f / total;
#pragma unroll 1
  for (int t = 0; t < TILES; ++t) {
    tile.load(row, t, n, hidden);
    tile.write(y, stride, n, [&](int item, float(&values)[VECTOR]) {
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) values[k] = divided(expf(tile.at(item, k) - m), total, reciprocal);
    });
  }
}

__device__ void softmax_of_block(const Row &row, Storage *y, int64 stride, int n, float hidden) {
  Storage stored;
  store(&stored, hidden);
  if constexpr (TILES == 1) {
    resident(row, y, stride, n, stored);
  } else {
    streamed(row, y, stride, n, stored);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)
    one_read(const Storage *x, int64 x_row, int64 x_column, const bool *mask, int64 mask_row, int64 mask_column,
             Storage *out, int64 out_row, int64 out_column, int n) {
  const Row row = row_of_block(x, x_row, x_column, mask, mask_row, mask_column);
  softmax_of_block(row, out + blockIdx.x * out_row, out_column, n, -INF);
}

// Faulty: what lies beyond the row, or is hidden, weighs as a 0 does.
extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)
    padded_with_zero(const Storage *x, int64 x_row, int64 x_column, const bool *mask, int64 mask_row,
                     int64 mask_column, Storage *out, int64 out_row, int64 out_column, int n) {
  const Row row = row_of_block(x, x_row, x_column, mask, mask_row, mask_column);
  softmax_of_block(row, out + blockIdx.x * out_row, out_column, n, 0.0f);
}
