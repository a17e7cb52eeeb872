// A row that memory is asked for once, 16 bytes a thread at a time: it stays in registers, or in the caches, and is written
// once.
//
// On the compiler's command line: BLOCK threads hold ITEMS vectors each, together a tile; a row is TILES tiles, and is
// read twice where that is more than one. AGAIN: a row of one tile is too, the second time from the caches, so that few
// registers do and more rows are on their way. BLOCKS blocks shall fit on a multiprocessor, which limits registers. WHOLE:
// rows start at multiples of 16 bytes, elements are neighbours, nothing is masked, and n is a multiple of a vector. Without
// it elements are read and written one by one, in the same places: the bits of a result do not depend on the layout. FULL:
// tiles end where rows do. WEIGHT, BIAS: a norm has them. gpu_impls/cuda/resident.py chooses.
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
#ifndef AGAIN
#define AGAIN 0
#endif
#ifndef WHOLE
#define WHOLE 1
#endif
#ifndef FULL
#define FULL 0
#endif
#ifndef WEIGHT
#define WEIGHT 1
#endif
#ifndef BIAS
#define BIAS 1
#endif

constexpr bool TWICE = TILES > 1 || AGAIN;

// Neighbours first, then neighbouring pairs: depth log2(COUNT).
template <class Monoid, int COUNT>
__device__ typename Monoid::Value pairwise(typename Monoid::Value (&values)[COUNT]) {
#pragma unroll
  for (int apart = 1; apart < COUNT; apart *= 2)
#pragma unroll
    for (int k = 0; k < COUNT; k += 2 * apart) values[k] = Monoid::merge(values[k], values[k + apart]);
  return values[0];
}

// Whether element i of a row is one.
__device__ inline bool within(int i, int n) { return FULL || i < n; }

__host__ __device__ constexpr int power_of_two_from(int count) {
  return count <= 1 ? 1 : 2 * power_of_two_from((count + 1) / 2);
}

// Merges one value a thread, in two steps with one barrier between them: what is begun after the first is on its way
// during the second. To be made once a kernel for each Monoid: nothing keeps a fast warp from writing again what a slow one
// has yet to read.
template <class Monoid>
struct BlockReduction {
  using Value = typename Monoid::Value;
  static constexpr int WARPS = BLOCK / WARP, LANES = power_of_two_from(WARPS);
  Value value;
  Value *scratch;

  __device__ explicit BlockReduction(Value of_thread) : value(warp_all_reduce<Monoid>(of_thread)) {
    if constexpr (WARPS > 1) {
      __shared__ Value of_warps[WARPS];
      scratch = of_warps;
      if (threadIdx.x % WARP == 0) scratch[threadIdx.x / WARP] = value;
      __syncthreads();
    }
  }

  // The result, to every thread that asks: whole warps.
  __device__ Value result() const {
    if constexpr (WARPS == 1) return value;
    const int warp = threadIdx.x % LANES;
    return warp_all_reduce<Monoid, LANES>(warp < WARPS ? scratch[warp] : Monoid::identity());
  }
};

template <class Monoid>
__device__ typename Monoid::Value block_all_reduce(typename Monoid::Value value) {
  return BlockReduction<Monoid>(value).result();
}

// What is read is to the caches: a row gone through once, one that is wanted again soon, one for the last time, and what
// every row needs.
enum class Reading { ONLY, FIRST, LAST, SHARED };

__device__ inline unsigned long long kept_in_cache() {
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

__device__ inline unsigned long long given_up_by_cache() {
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// An only reading has no hint: .cs was up to 0.05 slower on an H200, and evict_first and evict_last of a row read twice
// up to 0.04 faster. Without a branch, within which the next load would wait for this one. What is not `there` stays as it
// is. Rows are volatile, for their loads are not to move behind the barriers that follow them; what every row needs may be
// read as early as registers allow.
template <Reading READING>
__device__ void load_sixteen(uint4 &into, const Storage *from, bool there) {
#define LOAD(how, hint, ...)                                                                                          \
  asm how("{ .reg .pred there; setp.ne.u32 there, %5, 0; @there ld.global" hint " }"                                  \
          : "+r"(into.x), "+r"(into.y), "+r"(into.z), "+r"(into.w)                                                    \
          : "l"(from), "r"(unsigned(there)), ##__VA_ARGS__)
  if constexpr (READING == Reading::ONLY) {
    LOAD(volatile, ".v4.u32 {%0, %1, %2, %3}, [%4];");
  } else if constexpr (READING == Reading::FIRST) {
    LOAD(volatile, ".L1::evict_last.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %6;", "l"(kept_in_cache()));
  } else if constexpr (READING == Reading::SHARED) {
    LOAD(, ".nc.v4.u32 {%0, %1, %2, %3}, [%4];");
  } else {
    LOAD(volatile, ".L1::evict_first.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %6;", "l"(given_up_by_cache()));
  }
#undef LOAD
}

__device__ inline void store_sixteen(Storage *to, uint4 stored, bool there) {
  asm volatile("{ .reg .pred there; setp.ne.u32 there, %5, 0; @there st.global.v4.u32 [%0], {%1, %2, %3, %4}; }" ::"l"(to),
               "r"(stored.x), "r"(stored.y), "r"(stored.z), "r"(stored.w), "r"(unsigned(there))
               : "memory");
}

// `hidden` stands where the row has ended, and where the mask hides.
struct Tile {
  const Row row;
  const int n;
  Storage hidden;
  int start = 0;
  Sixteen kept[ITEMS] = {};

  // Where in the row this thread's vector `item` begins. Vectors are dealt out in turn: neighbours read neighbours.
  __device__ int first(int item) const { return start + (item * BLOCK + threadIdx.x) * VECTOR; }

  __device__ float at(int item, int k) const { return widen(kept[item].parts[k]); }

  __device__ void enter(int tile) { start = tile * (ITEMS * BLOCK * VECTOR); }

  __device__ void load(int tile) {
    enter(tile);
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) load_item<TWICE ? Reading::FIRST : Reading::ONLY>(item);
  }

  template <Reading READING>
  __device__ void load_item(int item) {
    const int i = first(item);
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) kept[item].parts[k] = hidden;
    if constexpr (WHOLE) {
      load_sixteen<READING>(kept[item].whole, row.x + i, within(i, n));
    } else {
#pragma unroll
      for (int k = 0; k < VECTOR; ++k)
        if (within(i + k, n) && row.shows(i + k)) kept[item].parts[k] = row.x[(i + k) * row.stride];
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

  // Before write(): what is read twice is read again from here on.
  __device__ void begin(int tile) {
    enter(tile);
    if (TWICE) load_item<Reading::LAST>(0);
  }

  // `of(item, values)` fills in this thread's vector `item` of the result, while the next is on its way.
  template <class Of>
  __device__ void write(Storage *y, int64 stride, const Of &of) {
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      if (TWICE && item + 1 < ITEMS) load_item<Reading::LAST>(item + 1);
      float values[VECTOR];
      of(item, values);
      Sixteen stored;
#pragma unroll
      for (int k = 0; k < VECTOR; k += 2) store_two(&stored.parts[k], values[k], values[k + 1]);
      const int i = first(item);
      if constexpr (WHOLE) {
        store_sixteen(y + i, stored.whole, within(i, n));
      } else {
#pragma unroll
        for (int k = 0; k < VECTOR; ++k)
          if (within(i + k, n)) y[(i + k) * stride] = stored.parts[k];
      }
    }
  }
};

// A vector of a weight or a bias, or of what stands for it.
template <bool GIVEN>
__device__ Sixteen load_columns(const Storage *columns, int64 stride, int i, int n, float absent) {
  Sixteen loaded;
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) store(&loaded.parts[k], absent);
  if constexpr (GIVEN && WHOLE) {
    load_sixteen<Reading::SHARED>(loaded.whole, columns + i, within(i, n));
  } else if constexpr (GIVEN) {
#pragma unroll
    for (int k = 0; k < VECTOR; ++k)
      if (within(i + k, n)) loaded.parts[k] = columns[(i + k) * stride];
  }
  return loaded;
}

__device__ inline float narrowed(float value) { return value; }
__device__ inline float narrowed(double value) { return float(value); }

// Weight and bias of a thread's vectors, each read while the vector before is computed: no load waits behind a store.
struct Columns {
  Affine affine;
  int n;
  Sixteen weight, bias;

  // Without them z stays what it is, the sign of a zero too.
  __device__ void load(int i) {
    weight = load_columns<WEIGHT>(affine.weight, affine.weight_stride, i, n, 1.0f);
    bias = load_columns<BIAS>(affine.bias, affine.bias_stride, i, n, -0.0f);
  }

  // Before write(): asks for what the first vectors need.
  __device__ void begin(Tile &tile, int t) {
    tile.begin(t);
    load(tile.first(0));
  }

  // Writes of(x), scaled and shifted in the arithmetic of Number.
  template <class Number, class Of>
  __device__ void write(Tile &tile, Storage *y, int64 stride, const Of &of) {
    tile.write(y, stride, [&](int item, float(&values)[VECTOR]) {
      const Sixteen w = weight, b = bias;
      if (item + 1 < ITEMS) load(tile.first(item + 1));
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) {
        const Number z = of(tile.at(item, k));
        values[k] = narrowed(z * Number(widen(w.parts[k])) + Number(widen(b.parts[k])));
      }
    });
  }
};
