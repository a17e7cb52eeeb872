// softmax of a row that memory is asked for once: maximum, exponentials and their sum, output. It stays in registers, or is
// read again from the caches for the output. Of rows longer than a tile maximum and sum are made in one reading. out may
// be x.
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

__device__ void resident(Tile &tile, Storage *y, int64 stride) {
  tile.load(0);
  const float m = subtractable(block_all_reduce<Largest>(largest_of(tile)));
  tile.rederive();
  float e[ITEMS][VECTOR], parts[ITEMS];
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    float values[VECTOR];
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) values[k] = e[item][k] = expf(tile.at(item, k) - m);
    parts[item] = pairwise<Sum>(values);
  }
  const BlockReduction<Sum> sum(pairwise<Sum>(parts));
  tile.begin(0);
  const float total = nonzero(sum.result()), reciprocal = 1.0f / total;
  tile.write(y, stride, [&](int item, float(&values)[VECTOR]) {
#pragma unroll
    for (int k = 0; k < VECTOR; ++k)
      values[k] = divided(TWICE ? expf(tile.at(item, k) - m) : e[item][k], total, reciprocal);
  });
}

__device__ void streamed(Tile &tile, Storage *y, int64 stride) {
  Shifted whole = Online::identity();
#pragma unroll 1
  for (int t = 0; t < TILES; ++t) {
    tile.load(t);
    const float m = largest_of(tile), shift = subtractable(m);
    whole = Online::merge(whole, {m, tile.reduce<Sum>([&](float x) { return expf(x - shift); })});
  }
  whole = block_all_reduce<Online>(whole);
  const float m = subtractable(whole.m), total = nonzero(whole.l), reciprocal = 1.0f / total;
#pragma unroll 1
  for (int t = 0; t < TILES; ++t) {
    tile.begin(t);
    tile.write(y, stride, [&](int item, float(&values)[VECTOR]) {
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) values[k] = divided(expf(tile.at(item, k) - m), total, reciprocal);
    });
  }
}

__device__ void softmax_of_block(const Row &row, Storage *y, int64 stride, int n, float hidden) {
  Tile tile = {row, n, {}};
  store(&tile.hidden, hidden);
  if constexpr (TILES == 1) {
    resident(tile, y, stride);
  } else {
    streamed(tile, y, stride);
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
