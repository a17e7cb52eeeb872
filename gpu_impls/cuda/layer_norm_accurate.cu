// layer_norm of a row that memory is asked for once: it stays in registers, or in the caches. Statistics are in a Wide
// arithmetic: double, or two floats. Rows longer than a tile are read twice. out may be x. A row with NaN or an infinity
// gives NaN throughout.
//
// In one reading, about the row's first element p: S = sum (x - p) and Q = sum (x - p)^2. An element of the row is near
// enough as a pivot: Q / n exceeds the variance by a factor of n + 1 at most, which costs Wide at most 17 bits.
//
// x - mean is computed as (n (x - p) - S) / n: where S is exact, one rounding away from the exact value however close x
// lies to the mean. x minus a rounded mean would be off by a rounding of the mean.
//
// Of 16-bit storage the sums are as wide, the rest is float: the mean as two floats, which leaves x - mean with two
// roundings of its own size.
#include "resident.cuh"
#include "two_float.cuh"

// What TwoFloat has too, for double.
__device__ inline double reciprocal_root(double a) { return rsqrt(a); }
__device__ inline double product_less(double a, double b, double c) { return fma(a, b, -c); }

__device__ inline double exchanged(double value, int distance) { return __shfl_xor_sync(ALL_LANES, value, distance); }

template <class Wide>
struct Sums {
  Wide values, squares;
};

template <class Wide>
__device__ inline Sums<Wide> exchanged(Sums<Wide> sums, int distance) {
  return {exchanged(sums.values, distance), exchanged(sums.squares, distance)};
}

template <class Wide>
struct AboutPivot {
  using Value = Sums<Wide>;
  static __device__ Value identity() { return {Wide(0.0f), Wide(0.0f)}; }
  static __device__ Value merge(Value a, Value b) { return {a.values + b.values, a.squares + b.squares}; }
  static __device__ Value extend(Value a, Wide apart) { return {a.values + apart, a.squares + apart * apart}; }
};

struct Arguments {
  Row row;
  Affine affine;
  Storage *y;
  int64 stride;
  float *means, *rstds;
  float eps;
  int n;
};

// ROUND_MEAN: a fault, see below.
template <class Wide, bool ROUND_MEAN = false>
__device__ void layer_norm(const Arguments &a) {
  if (a.n == 0) return;
  constexpr bool IN_FLOAT = sizeof(Storage) == 2 || ROUND_MEAN;
  const Storage first = a.row.x[0];  // beyond the row stands the pivot, which adds nothing
  const Wide pivot = widen(first), n = float(a.n), one = 1.0f;
  Tile tile = {a.row, a.n, first};
  Columns columns = {a.affine, a.n};
  Sums<Wide> sums = AboutPivot<Wide>::identity();
#pragma unroll 1
  for (int t = 0; t < TILES; ++t) {
    tile.load(t);
#pragma unroll
    for (int item = 0; item < ITEMS; ++item)
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) sums = AboutPivot<Wide>::extend(sums, Wide(tile.at(item, k)) - pivot);
  }
  tile.rederive();
  const BlockReduction<AboutPivot<Wide>> reduction(sums);
  columns.begin(tile, 0);
  const Sums<Wide> total = reduction.result();
  const Wide inverse = one / n, apart = total.values * inverse, mean = pivot + apart;
  const Wide rstd = reciprocal_root(total.squares * inverse - apart * apart + Wide(a.eps)), scale = rstd * inverse;
  if (threadIdx.x == 0 && a.means != nullptr) a.means[blockIdx.x] = narrowed(mean);
  if (threadIdx.x == 0 && a.rstds != nullptr) a.rstds[blockIdx.x] = narrowed(rstd);
  const float near = narrowed(mean), rest = ROUND_MEAN ? 0.0f : narrowed(mean - Wide(near)), narrow_rstd = narrowed(rstd);
#pragma unroll 1
  for (int t = 0; t < TILES; ++t) {
    if (t > 0) columns.begin(tile, t);
    if constexpr (IN_FLOAT) {
      columns.write<float>(tile, a.y, a.stride, [&](float x) { return ((x - near) - rest) * narrow_rstd; });
    } else {
      columns.write<Wide>(tile, a.y, a.stride,
                          [&](float x) { return product_less(n, Wide(x) - pivot, total.values) * scale; });
    }
  }
}

#define NORM_IN                                                                                                       \
  const Storage *x, int64 x_row, int64 x_column, const Storage *weight, int64 weight_stride, const Storage *bias,     \
      int64 bias_stride, Storage *out, int64 out_row, int64 out_column, float *means, float *rstds, float eps, int n
#define ARGUMENTS                                                                                                     \
  {row_of_block(x, x_row, x_column), {weight, weight_stride, bias, bias_stride}, out + blockIdx.x * out_row,          \
   out_column, means, rstds, eps, n}

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS) in_double(NORM_IN) { layer_norm<double>(ARGUMENTS); }

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS) in_two_floats(NORM_IN) { layer_norm<TwoFloat>(ARGUMENTS); }

// Faulty by its claim: x - mean with the mean rounded to float, as it is usually written.
extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS) mean_rounded(NORM_IN) { layer_norm<double, true>(ARGUMENTS); }
