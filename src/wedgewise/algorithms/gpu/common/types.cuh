// Widths, and what the emulation on a CPU replaces.
#ifndef EMULATED
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) unsigned char name##_bytes[]; type* name = reinterpret_cast<type*>(name##_bytes)
// Threads may store equal values in one place at once.
#define STORE_EQUAL(place, value) (*(place) = (value))
// Places that others read or write at the same time.
template <class T>
__device__ __forceinline__ T load_racing(const T* place) { return *static_cast<const volatile T*>(place); }
template <class T>
__device__ __forceinline__ void store_racing(T* place, T value) { *static_cast<volatile T*>(place) = value; }
#endif

#ifndef OFFSET_BITS
#define OFFSET_BITS 32
#endif
#if OFFSET_BITS == 64
typedef u64 offset_t;
#else
typedef u32 offset_t;
#endif

#define WARP 32u
#define ALL_LANES 0xFFFFFFFFu
