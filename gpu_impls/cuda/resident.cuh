// A row that stays in registers: read once, 16 bytes a thread at a time, computed on, written once. What is read or
// written once goes past the caches (.cs), so that weights stay in them.
//
// On the compiler's command line: BLOCK threads hold ITEMS vectors each, together a tile; a row is TILES tiles, and is
// read twice where that is more than one. WHOLE: rows start at multiples of 16 bytes, elements are neighbours, nothing
// is masked, and n is a multiple of a vector. Without it elements are read and written one by one, in the same places:
// the bits of a result do not depend on the layout. gpu_impls/cuda/resident.py chooses.
#pragma once
#include "affine.cuh"
#include "row.cuh"
#include "vector.cuh"
#include "warp.cuh"

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif
#ifndef ITEMS
#define ITEMS 4
#endif
#ifndef TILES
#define TILES 1
#endif
#ifndef WHOLE
#define WHOLE 1
#endif

// Neighbours first, then neighbouring pairs: depth log2(COUNT).
template <class Monoid, int COUNT>
__device__ typename Monoid::Value pairwise(typename Monoid::Value (&values)[COUNT]) {
#pragma unroll
  for (int apart = 1; apart < COUNT; apart *= 2)
#pragma unroll
    for (int k = 0; k < COUNT; k += 2 * apart) values[k] = Monoid::merge(values[k], values[k + apart]);
  return values[0];
}

__host__ __device__ constexpr int power_of_two_from(int count) {
  return count <= 1 ? 1 : 2 * power_of_two_from((count + 1) / 2);
}

// Merges one value a thread; every thread gets the result, after one barrier. To be called once a kernel for each
// Monoid: nothing keeps a fast warp from writing again what a slow one has yet to read.
template <class Monoid>
__device__ typename Monoid::Value block_all_reduce(typename Monoid::Value value) {
  constexpr int WARPS = BLOCK / WARP, LANES = power_of_two_from(WARPS);
  value = warp_all_reduce<Monoid>(value);
  if constexpr (WARPS > 1) {
    __shared__ typename Monoid::Value scratch[WARPS];
    if (threadIdx.x % WARP == 0) scratch[threadIdx.x / WARP] = value;
    __syncthreads();
    const int warp = threadIdx.x % LANES;
    value = warp_all_reduce<Monoid, LANES>(warp < WARPS ? scratch[warp] : Monoid::identity());
  }
  return value;
}

__device__ inline uint4 load_streaming(const Storage *from) {
  uint4 loaded;
  asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(loaded.x), "=r"(loaded.y), "=r"(loaded.z), "=r"(loaded.w)
               : "l"(from));
  return loaded;
}

__device__ inline void store_streaming(Storage *to, uint4 stored) {
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(stored.x), "r"(stored.y), "r"(stored.z),
               "r"(stored.w)
               : "memory");
}

struct Tile {
  Sixteen kept[ITEMS];
  int start;

  // Where in the row this thread's vector `item` begins. Vectors are dealt out in turn: neighbours read neighbours.
  __device__ int first(int item) const { return start + (item * BLOCK + threadIdx.x) * VECTOR; }

  __device__ float at(int item, int k) const { return widen(kept[item].parts[k]); }

  // `hidden` stands where the row has ended, and where the mask hides.
  __device__ void load(const Row &row, int tile, int n, Storage hidden) {
    start = tile * (ITEMS * BLOCK * VECTOR);
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      const int i = first(item);
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) kept[item].parts[k] = hidden;
      if constexpr (WHOLE) {
        if (i < n) kept[item].whole = load_streaming(row.x + i);
      } else {
#pragma unroll
        for (int k = 0; k < VECTOR; ++k)
          if (i + k < n && row.shows(i + k)) kept[item].parts[k] = row.x[(i + k) * row.stride];
      }
    }
  }

  // From here on the compiler knows nothing of the elements: what it derived from them before it derives again, in the
  // place of keeping it in registers.
  __device__ void rederive() {
#pragma unroll
    for (int item = 0; item < ITEMS; ++item)
      asm volatile("" : "+r"(kept[item].whole.x), "+r"(kept[item].whole.y), "+r"(kept[item].whole.z),
                   "+r"(kept[item].whole.w));
  }

  // The merge of `of` every element.
  template <class Monoid, class Of>
  __device__ typename Monoid::Value reduce(const Of &of) const {
    typename Monoid::Value whole[ITEMS];
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      typename Monoid::Value values[VECTOR];
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) values[k] = of(at(item, k));
      whole[item] = pairwise<Monoid>(values);
    }
    return pairwise<Monoid>(whole);
  }

  // Writes the row: `of(item, i, values)` fills in the vector that begins at i.
  template <class Of>
  __device__ void write(Storage *y, int64 stride, int n, const Of &of) const {
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      const int i = first(item);
      if (i >= n) continue;
      float values[VECTOR];
      of(item, i, values);
      Sixteen stored;
#pragma unroll
      for (int k = 0; k < VECTOR; k += 2) store_two(&stored.parts[k], values[k], values[k + 1]);
      if constexpr (WHOLE) {
        store_streaming(y + i, stored.whole);
      } else {
#pragma unroll
        for (int k = 0; k < VECTOR; ++k)
          if (i + k < n) y[(i + k) * stride] = stored.parts[k];
      }
    }
  }
};

// The vector of a weight or a bias that begins at i, widened.
__device__ inline void load_columns(const Storage *columns, int64 stride, int i, int n, float (&values)[VECTOR]) {
  Sixteen loaded;
  if constexpr (WHOLE) {
    loaded.whole = __ldg(reinterpret_cast<const uint4 *>(columns + i));
  } else {
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) loaded.parts[k] = columns[min(i + k, n - 1) * stride];
  }
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) values[k] = widen(loaded.parts[k]);
}

// Weight and bias on the vector that begins at i, in the arithmetic of Number.
template <class Number>
__device__ void apply(const Affine &affine, int i, int n, Number (&z)[VECTOR]) {
  float columns[VECTOR];
  if (affine.weight != nullptr) {
    load_columns(affine.weight, affine.weight_stride, i, n, columns);
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) z[k] = z[k] * columns[k];
  }
  if (affine.bias != nullptr) {
    load_columns(affine.bias, affine.bias_stride, i, n, columns);
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) z[k] = z[k] + columns[k];
  }
}
