// rms_norm of a row that memory is asked for once: it stays in registers, or in the caches. Rows longer than a tile are
// read twice. out may be x.
#include "resident.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)
    one_read(const Storage *x, int64 x_row, int64 x_column, const Storage *weight, int64 weight_stride,
             const Storage *bias, int64 bias_stride, Storage *out, int64 out_row, int64 out_column, float eps, int n) {
  const Row row = row_of_block(x, x_row, x_column);
  Storage *y = out + blockIdx.x * out_row;
  Tile tile = {row, n, {}};
  Columns columns = {{weight, weight_stride, bias, bias_stride}, n};
  float squares = Sum::identity();
#pragma unroll 1
  for (int t = 0; t < TILES; ++t) {
    tile.load(t);
    squares += tile.reduce<Sum>([](float x) { return x * x; });
  }
  const BlockReduction<Sum> sum(squares);
  columns.begin(tile, 0);
  const float reciprocal = rsqrtf(sum.result() / n + eps);
#pragma unroll 1
  for (int t = 0; t < TILES; ++t) {
    if (t > 0) columns.begin(tile, t);
    columns.write<float>(tile, y, out_column, [&](float x) { return x * reciprocal; });
  }
}
