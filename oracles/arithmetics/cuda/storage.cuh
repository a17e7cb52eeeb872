// The storage formats by their bits: STORAGE_BITS, PRECISION and EMIN come from the compiler's command line.
#pragma once

#ifndef NAN
#define NAN __longlong_as_double(0x7ff8000000000000ll)
#endif
#ifndef INFINITY
#define INFINITY __longlong_as_double(0x7ff0000000000000ll)
#endif

#if STORAGE_BITS == 32
typedef unsigned int Storage;
#else
typedef unsigned short Storage;
#endif

constexpr int FRACTION = PRECISION - 1;
constexpr Storage SIGN = Storage(1) << (STORAGE_BITS - 1);
constexpr Storage EXPONENTS = Storage(SIGN - (Storage(1) << FRACTION));  // all ones: infinities and NaN

// 2^k of a normal double.
__device__ inline double power_of_two(int k) { return __longlong_as_double((long long)(k + 1023) << 52); }

// A stored number as a double, which holds it exactly. float32 and bfloat16 are floats, or begin like one.
__device__ inline double widen(Storage bits) {
#if PRECISION != 11
  return __uint_as_float((unsigned int)bits << (32 - STORAGE_BITS));
#else
  const Storage magnitude = bits & ~SIGN;
  const double sign = bits & SIGN ? -1.0 : 1.0;
  if (magnitude > EXPONENTS) return NAN;
  if (magnitude == EXPONENTS) return sign * INFINITY;
  const int exponent = magnitude >> FRACTION;
  const double fraction = magnitude & Storage((Storage(1) << FRACTION) - 1);
  const double scaled = exponent ? fraction + double(Storage(1) << FRACTION) : fraction;
  return sign * scaled * power_of_two((exponent ? exponent : 1) - 1 + EMIN - FRACTION);
#endif
}

// Half the way to the next number above or below a finite one; beyond the largest, as if numbers went on.
__device__ inline double half_gap(Storage bits, bool above) {
  const bool grows = (bits & ~SIGN) == 0 || above == !(bits & SIGN);
  const Storage magnitude = bits & ~SIGN;
  const Storage next = grows ? magnitude + 1 : magnitude - 1;
  const Storage other = next == EXPONENTS ? Storage(magnitude - 1) : next;
  return 0.5 * fabs(widen(other) - widen(magnitude));
}
