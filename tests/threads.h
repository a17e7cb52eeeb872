// A block of 64 threads of this processor, in two warps, for device code that includes oracles' host.h.
#pragma once
#include <pthread.h>

#include <cstring>

#define BLOCK 64
#define WARP 32

struct Index {
  long long x;
};
static thread_local Index threadIdx{0};
static Index blockIdx{0}, blockDim{BLOCK};

struct Barriers {
  pthread_barrier_t block, warps[BLOCK / WARP];
  Barriers() {
    pthread_barrier_init(&block, nullptr, BLOCK);
    for (auto &warp : warps) pthread_barrier_init(&warp, nullptr, WARP);
  }
};
static Barriers barriers;
static double said[BLOCK];  // what each lane tells its warp

static inline void __syncthreads() { pthread_barrier_wait(&barriers.block); }
static inline void warp_barrier() { pthread_barrier_wait(&barriers.warps[threadIdx.x / WARP]); }

// What a lane of the same warp says; everybody speaks.
static inline double heard(double value, int lane) {
  said[threadIdx.x] = value;
  warp_barrier();
  const double other = said[threadIdx.x / WARP * WARP + lane];
  warp_barrier();
  return other;
}

static inline int own_lane() { return threadIdx.x % WARP; }
static inline double __shfl_xor_sync(unsigned, double v, int apart) { return heard(v, own_lane() ^ apart); }
static inline double __shfl_sync(unsigned, double v, int lane) { return heard(v, lane); }
static inline double __shfl_up_sync(unsigned, double v, int apart) {
  return heard(v, own_lane() < apart ? own_lane() : own_lane() - apart);
}
static inline unsigned __ballot_sync(unsigned, bool mine) {
  unsigned votes = 0;
  for (int lane = 0; lane < WARP; ++lane) votes |= unsigned(heard(mine, lane) != 0) << lane;
  return votes;
}
static inline bool __any_sync(unsigned mask, bool mine) { return __ballot_sync(mask, mine) != 0; }
static inline unsigned atomicAdd(unsigned *at, unsigned value) { return __atomic_fetch_add(at, value, __ATOMIC_RELAXED); }
