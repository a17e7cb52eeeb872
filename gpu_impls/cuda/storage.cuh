// The storage format, STORAGE on the compiler's command line: float, Half or BFloat16. Arithmetic is float32 throughout:
// a value is widened when it is loaded (exactly) and rounded once when it is stored. No CUDA header is needed, so NVRTC
// finds everything in this folder.
#pragma once

struct Half {
  unsigned short bits;
};

struct BFloat16 {
  unsigned short bits;
};

#ifndef STORAGE
#define STORAGE float
#endif
using Storage = STORAGE;
using int64 = long long;

#define INF __int_as_float(0x7f800000)  // NVRTC has no INFINITY without headers

__device__ inline float widen(float value) { return value; }

__device__ inline float widen(Half value) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
}

__device__ inline float widen(BFloat16 value) { return __uint_as_float(unsigned(value.bits) << 16); }

__device__ inline void store(float *to, float value) { *to = value; }

__device__ inline void store(Half *to, float value) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to->bits) : "f"(value));
}

__device__ inline void store(BFloat16 *to, float value) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to->bits) : "f"(value));
}

// Two neighbours at once, the first at a multiple of their size.
__device__ inline void store_two(float *to, float first, float second) {
  to[0] = first;
  to[1] = second;
}

__device__ inline void store_two(Half *to, float first, float second) {
  asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(*reinterpret_cast<unsigned *>(to)) : "f"(first), "f"(second));
}

__device__ inline void store_two(BFloat16 *to, float first, float second) {
  asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(*reinterpret_cast<unsigned *>(to)) : "f"(first), "f"(second));
}
