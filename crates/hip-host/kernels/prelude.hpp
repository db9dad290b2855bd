// What HIPRTC gives a kernel without being asked, for the machine's C++ compiler.
//
// A block runs on one operating-system thread. Its GPU threads are iterations of a loop or, where they wait for each
// other, coroutines on that thread. threadIdx and its kin are therefore thread-local; their address must never be
// taken, which lets the compiler see that no store through a kernel's pointer changes them, and turn the loop into
// vector code.

#define __HIPCC_RTC__ 1
#define __HIP__ 1
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_DEVICE_COMPILE__ 1
#define __HIPCL_HOST__ 1
#define HIP_VERSION_MAJOR 6
#define HIP_VERSION_MINOR 4

// Read by our own scanner after preprocessing; it puts the real thing in their place.
#define __global__ __hipcl_global
#define __shared__ __hipcl_shared

#define __device__
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#ifndef __restrict__
#define __restrict__ __restrict
#endif

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

extern "C" int printf(const char*, ...);

// ---- vector types --------------------------------------------------------------------------------------------------

// The types that a single number for all members may have.
template <class T> struct __hipcl_number {};
#define __HIPCL_NUMBER(T) template <> struct __hipcl_number<T> { typedef int type; };
__HIPCL_NUMBER(bool) __HIPCL_NUMBER(char) __HIPCL_NUMBER(signed char) __HIPCL_NUMBER(unsigned char)
__HIPCL_NUMBER(short) __HIPCL_NUMBER(unsigned short) __HIPCL_NUMBER(int) __HIPCL_NUMBER(unsigned int)
__HIPCL_NUMBER(long) __HIPCL_NUMBER(unsigned long) __HIPCL_NUMBER(long long) __HIPCL_NUMBER(unsigned long long)
__HIPCL_NUMBER(float) __HIPCL_NUMBER(double)

// A number for every member, one for each, or, as in C, none: then nothing is written.
#define __HIPCL_MEMBERS1(V, T)                                                                                         \
    T x;                                                                                                               \
    V() = default;                                                                                                     \
    template <class U, typename __hipcl_number<U>::type = 0> constexpr V(U v) : x((T)v) {}

#define __HIPCL_MEMBERS2(V, T)                                                                                         \
    T x, y;                                                                                                            \
    V() = default;                                                                                                     \
    template <class U, typename __hipcl_number<U>::type = 0> explicit constexpr V(U v) : x((T)v), y((T)v) {}           \
    template <class X, class Y> constexpr V(X x, Y y) : x((T)x), y((T)y) {}

#define __HIPCL_MEMBERS3(V, T)                                                                                         \
    T x, y, z;                                                                                                         \
    V() = default;                                                                                                     \
    template <class U, typename __hipcl_number<U>::type = 0> explicit constexpr V(U v) : x((T)v), y((T)v), z((T)v) {}  \
    template <class X, class Y, class Z> constexpr V(X x, Y y, Z z) : x((T)x), y((T)y), z((T)z) {}

#define __HIPCL_MEMBERS4(V, T)                                                                                         \
    T x, y, z, w;                                                                                                      \
    V() = default;                                                                                                     \
    template <class U, typename __hipcl_number<U>::type = 0> explicit constexpr V(U v) : x((T)v), y((T)v), z((T)v), w((T)v) {} \
    template <class X, class Y, class Z, class W> constexpr V(X x, Y y, Z z, W w) : x((T)x), y((T)y), z((T)z), w((T)w) {}

#define __HIPCL_OPS1(V, T)                                                                                             \
    static inline V operator+(V a, V b) { return V((T)(a.x + b.x)); }                                                  \
    static inline V operator-(V a, V b) { return V((T)(a.x - b.x)); }                                                  \
    static inline V operator*(V a, V b) { return V((T)(a.x * b.x)); }                                                  \
    static inline V operator/(V a, V b) { return V((T)(a.x / b.x)); }                                                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator+(V a, U s) { return a + V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator+(U s, V a) { return V((T)s) + a; } \
    template <class U> static inline V& operator+=(V& a, U b) { return a = a + b; }                                    \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator-(V a, U s) { return a - V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator-(U s, V a) { return V((T)s) - a; } \
    template <class U> static inline V& operator-=(V& a, U b) { return a = a - b; }                                    \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator*(V a, U s) { return a * V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator*(U s, V a) { return V((T)s) * a; } \
    template <class U> static inline V& operator*=(V& a, U b) { return a = a * b; }                                    \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator/(V a, U s) { return a / V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator/(U s, V a) { return V((T)s) / a; } \
    template <class U> static inline V& operator/=(V& a, U b) { return a = a / b; }                                    \
    static inline V operator-(V a) { return V((T)(-a.x)); }                                                            \
    static inline V& operator++(V& a) { return a = a + V((T)1); }                                                      \
    static inline V& operator--(V& a) { return a = a - V((T)1); }                                                      \
    static inline V operator++(V& a, int) { V old = a; ++a; return old; }                                              \
    static inline V operator--(V& a, int) { V old = a; --a; return old; }                                              \
    static inline bool operator==(V a, V b) { return a.x == b.x; }                                                     \
    static inline bool operator!=(V a, V b) { return !(a == b); }

#define __HIPCL_BITS1(V, T)                                                                                            \
    static inline V operator%(V a, V b) { return V((T)(a.x % b.x)); }                                                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator%(V a, U s) { return a % V((T)s); } \
    template <class U> static inline V& operator%=(V& a, U b) { return a = a % b; }                                    \
    static inline V operator&(V a, V b) { return V((T)(a.x & b.x)); }                                                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator&(V a, U s) { return a & V((T)s); } \
    template <class U> static inline V& operator&=(V& a, U b) { return a = a & b; }                                    \
    static inline V operator|(V a, V b) { return V((T)(a.x | b.x)); }                                                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator|(V a, U s) { return a | V((T)s); } \
    template <class U> static inline V& operator|=(V& a, U b) { return a = a | b; }                                    \
    static inline V operator^(V a, V b) { return V((T)(a.x ^ b.x)); }                                                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator^(V a, U s) { return a ^ V((T)s); } \
    template <class U> static inline V& operator^=(V& a, U b) { return a = a ^ b; }                                    \
    static inline V operator<<(V a, V b) { return V((T)(a.x << b.x)); }                                                \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator<<(V a, U s) { return a << V((T)s); } \
    template <class U> static inline V& operator<<=(V& a, U b) { return a = a << b; }                                  \
    static inline V operator>>(V a, V b) { return V((T)(a.x >> b.x)); }                                                \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator>>(V a, U s) { return a >> V((T)s); } \
    template <class U> static inline V& operator>>=(V& a, U b) { return a = a >> b; }                                  \
    static inline V operator~(V a) { return V((T)(~a.x)); }

#define __HIPCL_OPS2(V, T)                                                                                             \
    static inline V operator+(V a, V b) { return V((T)(a.x + b.x), (T)(a.y + b.y)); }                                  \
    static inline V operator-(V a, V b) { return V((T)(a.x - b.x), (T)(a.y - b.y)); }                                  \
    static inline V operator*(V a, V b) { return V((T)(a.x * b.x), (T)(a.y * b.y)); }                                  \
    static inline V operator/(V a, V b) { return V((T)(a.x / b.x), (T)(a.y / b.y)); }                                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator+(V a, U s) { return a + V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator+(U s, V a) { return V((T)s) + a; } \
    template <class U> static inline V& operator+=(V& a, U b) { return a = a + b; }                                    \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator-(V a, U s) { return a - V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator-(U s, V a) { return V((T)s) - a; } \
    template <class U> static inline V& operator-=(V& a, U b) { return a = a - b; }                                    \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator*(V a, U s) { return a * V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator*(U s, V a) { return V((T)s) * a; } \
    template <class U> static inline V& operator*=(V& a, U b) { return a = a * b; }                                    \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator/(V a, U s) { return a / V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator/(U s, V a) { return V((T)s) / a; } \
    template <class U> static inline V& operator/=(V& a, U b) { return a = a / b; }                                    \
    static inline V operator-(V a) { return V((T)(-a.x), (T)(-a.y)); }                                                 \
    static inline V& operator++(V& a) { return a = a + V((T)1); }                                                      \
    static inline V& operator--(V& a) { return a = a - V((T)1); }                                                      \
    static inline V operator++(V& a, int) { V old = a; ++a; return old; }                                              \
    static inline V operator--(V& a, int) { V old = a; --a; return old; }                                              \
    static inline bool operator==(V a, V b) { return a.x == b.x && a.y == b.y; }                                       \
    static inline bool operator!=(V a, V b) { return !(a == b); }

#define __HIPCL_BITS2(V, T)                                                                                            \
    static inline V operator%(V a, V b) { return V((T)(a.x % b.x), (T)(a.y % b.y)); }                                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator%(V a, U s) { return a % V((T)s); } \
    template <class U> static inline V& operator%=(V& a, U b) { return a = a % b; }                                    \
    static inline V operator&(V a, V b) { return V((T)(a.x & b.x), (T)(a.y & b.y)); }                                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator&(V a, U s) { return a & V((T)s); } \
    template <class U> static inline V& operator&=(V& a, U b) { return a = a & b; }                                    \
    static inline V operator|(V a, V b) { return V((T)(a.x | b.x), (T)(a.y | b.y)); }                                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator|(V a, U s) { return a | V((T)s); } \
    template <class U> static inline V& operator|=(V& a, U b) { return a = a | b; }                                    \
    static inline V operator^(V a, V b) { return V((T)(a.x ^ b.x), (T)(a.y ^ b.y)); }                                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator^(V a, U s) { return a ^ V((T)s); } \
    template <class U> static inline V& operator^=(V& a, U b) { return a = a ^ b; }                                    \
    static inline V operator<<(V a, V b) { return V((T)(a.x << b.x), (T)(a.y << b.y)); }                               \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator<<(V a, U s) { return a << V((T)s); } \
    template <class U> static inline V& operator<<=(V& a, U b) { return a = a << b; }                                  \
    static inline V operator>>(V a, V b) { return V((T)(a.x >> b.x), (T)(a.y >> b.y)); }                               \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator>>(V a, U s) { return a >> V((T)s); } \
    template <class U> static inline V& operator>>=(V& a, U b) { return a = a >> b; }                                  \
    static inline V operator~(V a) { return V((T)(~a.x), (T)(~a.y)); }

#define __HIPCL_OPS3(V, T)                                                                                             \
    static inline V operator+(V a, V b) { return V((T)(a.x + b.x), (T)(a.y + b.y), (T)(a.z + b.z)); }                  \
    static inline V operator-(V a, V b) { return V((T)(a.x - b.x), (T)(a.y - b.y), (T)(a.z - b.z)); }                  \
    static inline V operator*(V a, V b) { return V((T)(a.x * b.x), (T)(a.y * b.y), (T)(a.z * b.z)); }                  \
    static inline V operator/(V a, V b) { return V((T)(a.x / b.x), (T)(a.y / b.y), (T)(a.z / b.z)); }                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator+(V a, U s) { return a + V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator+(U s, V a) { return V((T)s) + a; } \
    template <class U> static inline V& operator+=(V& a, U b) { return a = a + b; }                                    \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator-(V a, U s) { return a - V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator-(U s, V a) { return V((T)s) - a; } \
    template <class U> static inline V& operator-=(V& a, U b) { return a = a - b; }                                    \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator*(V a, U s) { return a * V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator*(U s, V a) { return V((T)s) * a; } \
    template <class U> static inline V& operator*=(V& a, U b) { return a = a * b; }                                    \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator/(V a, U s) { return a / V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator/(U s, V a) { return V((T)s) / a; } \
    template <class U> static inline V& operator/=(V& a, U b) { return a = a / b; }                                    \
    static inline V operator-(V a) { return V((T)(-a.x), (T)(-a.y), (T)(-a.z)); }                                      \
    static inline V& operator++(V& a) { return a = a + V((T)1); }                                                      \
    static inline V& operator--(V& a) { return a = a - V((T)1); }                                                      \
    static inline V operator++(V& a, int) { V old = a; ++a; return old; }                                              \
    static inline V operator--(V& a, int) { V old = a; --a; return old; }                                              \
    static inline bool operator==(V a, V b) { return a.x == b.x && a.y == b.y && a.z == b.z; }                         \
    static inline bool operator!=(V a, V b) { return !(a == b); }

#define __HIPCL_BITS3(V, T)                                                                                            \
    static inline V operator%(V a, V b) { return V((T)(a.x % b.x), (T)(a.y % b.y), (T)(a.z % b.z)); }                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator%(V a, U s) { return a % V((T)s); } \
    template <class U> static inline V& operator%=(V& a, U b) { return a = a % b; }                                    \
    static inline V operator&(V a, V b) { return V((T)(a.x & b.x), (T)(a.y & b.y), (T)(a.z & b.z)); }                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator&(V a, U s) { return a & V((T)s); } \
    template <class U> static inline V& operator&=(V& a, U b) { return a = a & b; }                                    \
    static inline V operator|(V a, V b) { return V((T)(a.x | b.x), (T)(a.y | b.y), (T)(a.z | b.z)); }                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator|(V a, U s) { return a | V((T)s); } \
    template <class U> static inline V& operator|=(V& a, U b) { return a = a | b; }                                    \
    static inline V operator^(V a, V b) { return V((T)(a.x ^ b.x), (T)(a.y ^ b.y), (T)(a.z ^ b.z)); }                  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator^(V a, U s) { return a ^ V((T)s); } \
    template <class U> static inline V& operator^=(V& a, U b) { return a = a ^ b; }                                    \
    static inline V operator<<(V a, V b) { return V((T)(a.x << b.x), (T)(a.y << b.y), (T)(a.z << b.z)); }              \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator<<(V a, U s) { return a << V((T)s); } \
    template <class U> static inline V& operator<<=(V& a, U b) { return a = a << b; }                                  \
    static inline V operator>>(V a, V b) { return V((T)(a.x >> b.x), (T)(a.y >> b.y), (T)(a.z >> b.z)); }              \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator>>(V a, U s) { return a >> V((T)s); } \
    template <class U> static inline V& operator>>=(V& a, U b) { return a = a >> b; }                                  \
    static inline V operator~(V a) { return V((T)(~a.x), (T)(~a.y), (T)(~a.z)); }

#define __HIPCL_OPS4(V, T)                                                                                             \
    static inline V operator+(V a, V b) { return V((T)(a.x + b.x), (T)(a.y + b.y), (T)(a.z + b.z), (T)(a.w + b.w)); }  \
    static inline V operator-(V a, V b) { return V((T)(a.x - b.x), (T)(a.y - b.y), (T)(a.z - b.z), (T)(a.w - b.w)); }  \
    static inline V operator*(V a, V b) { return V((T)(a.x * b.x), (T)(a.y * b.y), (T)(a.z * b.z), (T)(a.w * b.w)); }  \
    static inline V operator/(V a, V b) { return V((T)(a.x / b.x), (T)(a.y / b.y), (T)(a.z / b.z), (T)(a.w / b.w)); }  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator+(V a, U s) { return a + V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator+(U s, V a) { return V((T)s) + a; } \
    template <class U> static inline V& operator+=(V& a, U b) { return a = a + b; }                                    \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator-(V a, U s) { return a - V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator-(U s, V a) { return V((T)s) - a; } \
    template <class U> static inline V& operator-=(V& a, U b) { return a = a - b; }                                    \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator*(V a, U s) { return a * V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator*(U s, V a) { return V((T)s) * a; } \
    template <class U> static inline V& operator*=(V& a, U b) { return a = a * b; }                                    \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator/(V a, U s) { return a / V((T)s); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator/(U s, V a) { return V((T)s) / a; } \
    template <class U> static inline V& operator/=(V& a, U b) { return a = a / b; }                                    \
    static inline V operator-(V a) { return V((T)(-a.x), (T)(-a.y), (T)(-a.z), (T)(-a.w)); }                           \
    static inline V& operator++(V& a) { return a = a + V((T)1); }                                                      \
    static inline V& operator--(V& a) { return a = a - V((T)1); }                                                      \
    static inline V operator++(V& a, int) { V old = a; ++a; return old; }                                              \
    static inline V operator--(V& a, int) { V old = a; --a; return old; }                                              \
    static inline bool operator==(V a, V b) { return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w; }           \
    static inline bool operator!=(V a, V b) { return !(a == b); }

#define __HIPCL_BITS4(V, T)                                                                                            \
    static inline V operator%(V a, V b) { return V((T)(a.x % b.x), (T)(a.y % b.y), (T)(a.z % b.z), (T)(a.w % b.w)); }  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator%(V a, U s) { return a % V((T)s); } \
    template <class U> static inline V& operator%=(V& a, U b) { return a = a % b; }                                    \
    static inline V operator&(V a, V b) { return V((T)(a.x & b.x), (T)(a.y & b.y), (T)(a.z & b.z), (T)(a.w & b.w)); }  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator&(V a, U s) { return a & V((T)s); } \
    template <class U> static inline V& operator&=(V& a, U b) { return a = a & b; }                                    \
    static inline V operator|(V a, V b) { return V((T)(a.x | b.x), (T)(a.y | b.y), (T)(a.z | b.z), (T)(a.w | b.w)); }  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator|(V a, U s) { return a | V((T)s); } \
    template <class U> static inline V& operator|=(V& a, U b) { return a = a | b; }                                    \
    static inline V operator^(V a, V b) { return V((T)(a.x ^ b.x), (T)(a.y ^ b.y), (T)(a.z ^ b.z), (T)(a.w ^ b.w)); }  \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator^(V a, U s) { return a ^ V((T)s); } \
    template <class U> static inline V& operator^=(V& a, U b) { return a = a ^ b; }                                    \
    static inline V operator<<(V a, V b) { return V((T)(a.x << b.x), (T)(a.y << b.y), (T)(a.z << b.z), (T)(a.w << b.w)); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator<<(V a, U s) { return a << V((T)s); } \
    template <class U> static inline V& operator<<=(V& a, U b) { return a = a << b; }                                  \
    static inline V operator>>(V a, V b) { return V((T)(a.x >> b.x), (T)(a.y >> b.y), (T)(a.z >> b.z), (T)(a.w >> b.w)); } \
    template <class U, typename __hipcl_number<U>::type = 0> static inline V operator>>(V a, U s) { return a >> V((T)s); } \
    template <class U> static inline V& operator>>=(V& a, U b) { return a = a >> b; }                                  \
    static inline V operator~(V a) { return V((T)(~a.x), (T)(~a.y), (T)(~a.z), (T)(~a.w)); }

#define __HIPCL_VECTORS(N, T)                                                                                          \
    struct N##1 { __HIPCL_MEMBERS1(N##1, T) };                                                                         \
    struct alignas(2 * sizeof(T)) N##2 { __HIPCL_MEMBERS2(N##2, T) };                                                  \
    struct N##3 { __HIPCL_MEMBERS3(N##3, T) };                                                                         \
    struct alignas(4 * sizeof(T)) N##4 { __HIPCL_MEMBERS4(N##4, T) };                                                  \
    static inline N##1 make_##N##1(T x) { return N##1(x); }                                                            \
    static inline N##2 make_##N##2(T x, T y) { return N##2(x, y); }                                                    \
    static inline N##3 make_##N##3(T x, T y, T z) { return N##3(x, y, z); }                                            \
    static inline N##4 make_##N##4(T x, T y, T z, T w) { return N##4(x, y, z, w); }                                    \
    __HIPCL_OPS1(N##1, T) __HIPCL_OPS2(N##2, T) __HIPCL_OPS3(N##3, T) __HIPCL_OPS4(N##4, T)

#define __HIPCL_WHOLE_VECTORS(N, T)                                                                                    \
    __HIPCL_VECTORS(N, T)                                                                                              \
    __HIPCL_BITS1(N##1, T) __HIPCL_BITS2(N##2, T) __HIPCL_BITS3(N##3, T) __HIPCL_BITS4(N##4, T)

__HIPCL_WHOLE_VECTORS(char, signed char)
__HIPCL_WHOLE_VECTORS(uchar, unsigned char)
__HIPCL_WHOLE_VECTORS(short, short)
__HIPCL_WHOLE_VECTORS(ushort, unsigned short)
__HIPCL_WHOLE_VECTORS(int, int)
__HIPCL_WHOLE_VECTORS(uint, unsigned int)
__HIPCL_WHOLE_VECTORS(long, long)
__HIPCL_WHOLE_VECTORS(ulong, unsigned long)
__HIPCL_WHOLE_VECTORS(longlong, long long)
__HIPCL_WHOLE_VECTORS(ulonglong, unsigned long long)
__HIPCL_VECTORS(float, float)
__HIPCL_VECTORS(double, double)

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

// ---- where a thread is -----------------------------------------------------------------------------------------------

static thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;
static constexpr int warpSize = 64;

struct __hipcl_launch {
    unsigned int grid[3];
    unsigned int block[3];
    const unsigned char* arguments;
};

struct __hipcl_surroundings {
    void* shared;
    void (*stop)(__hipcl_surroundings*, unsigned int kind);
    void* exchange;
    unsigned long lanes;
    unsigned int missed_barrier;
    unsigned int cooperative;
};

static thread_local __hipcl_surroundings* __hipcl_here;

static inline unsigned int __hipcl_linear_thread() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

// Other threads of the block run before this returns, so what they change is put back.
static inline void __hipcl_stop(unsigned int kind) {
    __hipcl_surroundings* here = __hipcl_here;
    if (here->stop) {
        uint3 thread = threadIdx;
        here->stop(here, kind);
        threadIdx = thread;
        __hipcl_here = here;
    } else if (kind == 2 || blockDim.x * blockDim.y * blockDim.z > 1) {
        here->missed_barrier = 1;
    }
}

static inline void __syncthreads() { __hipcl_stop(0); }
static inline void __syncwarp(unsigned long = ~0ul) { __hipcl_stop(1); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

static inline void* __hipcl_dynamic_shared() { return __hipcl_here->shared; }

// A dynamic shared array declared at namespace scope: an object that turns into the pointer when used.
template <class T> struct __hipcl_shared_array {
    operator T*() const { return (T*)__hipcl_dynamic_shared(); }
    template <class U> explicit operator U*() const { return (U*)__hipcl_dynamic_shared(); }
};

// ---- cooperative groups -----------------------------------------------------------------------------------------------

// Indices are given member by member: a structure that is copied has its address taken, and then any store of a kernel may change
// it as far as the compiler can tell, and no kernel is vectorised well.
namespace cooperative_groups {
struct thread_block {
    unsigned int thread_rank() const { return __hipcl_linear_thread(); }
    unsigned int size() const { return blockDim.x * blockDim.y * blockDim.z; }
    unsigned int num_threads() const { return size(); }
    uint3 group_index() const { return uint3{blockIdx.x, blockIdx.y, blockIdx.z}; }
    uint3 thread_index() const { return uint3{threadIdx.x, threadIdx.y, threadIdx.z}; }
    bool is_valid() const { return true; }
    void sync() const { __hipcl_stop(0); }
};

// Of a launch whose blocks are all there at once: hipModuleLaunchCooperativeKernel.
struct grid_group {
    unsigned long long thread_rank() const {
        unsigned long long block = (blockIdx.z * (unsigned long long)gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        return block * (blockDim.x * blockDim.y * blockDim.z) + __hipcl_linear_thread();
    }
    unsigned long long size() const {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z * (blockDim.x * blockDim.y * blockDim.z);
    }
    unsigned long long num_threads() const { return size(); }
    bool is_valid() const { return __hipcl_here->cooperative != 0; }
    void sync() const { __hipcl_stop(2); }
};

static inline thread_block this_thread_block() { return thread_block(); }
static inline grid_group this_grid() { return grid_group(); }
}

// ---- warps -----------------------------------------------------------------------------------------------------------

template <class T> static inline T __hipcl_exchange(T value, int lane) {
    static_assert(sizeof(T) <= 16, "a shuffle moves at most 16 bytes");
    if (blockDim.x * blockDim.y * blockDim.z == 1) return value;
    unsigned int self = __hipcl_linear_thread();
    char* slots = (char*)__hipcl_here->exchange;
    if (slots) __builtin_memcpy(slots + 16 * self, &value, sizeof(T));
    __hipcl_stop(1);
    T other = value;
    unsigned int from = (self & ~63u) + (unsigned int)(lane & 63);
    if (slots && (__hipcl_here->lanes >> (lane & 63) & 1)) __builtin_memcpy(&other, slots + 16 * from, sizeof(T));
    __hipcl_stop(1);
    return other;
}

static inline unsigned int __lane_id() { return __hipcl_linear_thread() & 63u; }

template <class T> static inline T __shfl(T value, int lane, int width = 64) {
    int self = (int)__lane_id();
    return __hipcl_exchange(value, (self & ~(width - 1)) + (lane & (width - 1)));
}
template <class T> static inline T __shfl_up(T value, unsigned int delta, int width = 64) {
    int self = (int)__lane_id();
    int from = self - (int)delta;
    return __hipcl_exchange(value, from < (self & ~(width - 1)) ? self : from);
}
template <class T> static inline T __shfl_down(T value, unsigned int delta, int width = 64) {
    int self = (int)__lane_id();
    return __hipcl_exchange(value, (self & (width - 1)) + (int)delta >= width ? self : self + (int)delta);
}
template <class T> static inline T __shfl_xor(T value, int mask, int width = 64) {
    int self = (int)__lane_id();
    int from = self ^ mask;
    return __hipcl_exchange(value, from >= ((self + width) & ~(width - 1)) ? self : from);
}
template <class T> static inline T __shfl_sync(unsigned long, T value, int lane, int width = 64) { return __shfl(value, lane, width); }
template <class T> static inline T __shfl_up_sync(unsigned long, T value, unsigned int delta, int width = 64) { return __shfl_up(value, delta, width); }
template <class T> static inline T __shfl_down_sync(unsigned long, T value, unsigned int delta, int width = 64) { return __shfl_down(value, delta, width); }
template <class T> static inline T __shfl_xor_sync(unsigned long, T value, int mask, int width = 64) { return __shfl_xor(value, mask, width); }

static inline unsigned long __ballot(int predicate) {
    if (blockDim.x * blockDim.y * blockDim.z == 1) return predicate != 0;
    unsigned int self = __hipcl_linear_thread();
    char* slots = (char*)__hipcl_here->exchange;
    if (slots) slots[16 * self] = predicate != 0;
    __hipcl_stop(1);
    unsigned long lanes = __hipcl_here->lanes, mask = 0;
    for (unsigned int lane = 0; slots && lane < 64; ++lane)
        if ((lanes >> lane & 1) && slots[16 * ((self & ~63u) + lane)]) mask |= 1ul << lane;
    __hipcl_stop(1);
    return mask;
}
static inline unsigned long __activemask() { return __ballot(1); }
static inline int __any(int predicate) { return __ballot(predicate) != 0; }
static inline int __all(int predicate) { return __ballot(!predicate) == 0; }

// ---- atomics -----------------------------------------------------------------------------------------------------------

#define __HIPCL_ATOMICS(T)                                                                                             \
    static inline T atomicAdd(T* p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }                        \
    static inline T atomicSub(T* p, T v) { return __atomic_fetch_sub(p, v, __ATOMIC_RELAXED); }                        \
    static inline T atomicAnd(T* p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); }                        \
    static inline T atomicOr(T* p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }                          \
    static inline T atomicXor(T* p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); }                        \
    static inline T atomicExch(T* p, T v) { return __atomic_exchange_n(p, v, __ATOMIC_RELAXED); }                      \
    static inline T atomicCAS(T* p, T expected, T v) {                                                                 \
        __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                       \
        return expected;                                                                                               \
    }                                                                                                                  \
    static inline T atomicMax(T* p, T v) {                                                                             \
        T old = __atomic_load_n(p, __ATOMIC_RELAXED);                                                                  \
        while (old < v && !__atomic_compare_exchange_n(p, &old, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}       \
        return old;                                                                                                    \
    }                                                                                                                  \
    static inline T atomicMin(T* p, T v) {                                                                             \
        T old = __atomic_load_n(p, __ATOMIC_RELAXED);                                                                  \
        while (v < old && !__atomic_compare_exchange_n(p, &old, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}       \
        return old;                                                                                                    \
    }
__HIPCL_ATOMICS(int)
__HIPCL_ATOMICS(unsigned int)
__HIPCL_ATOMICS(long)
__HIPCL_ATOMICS(unsigned long)
__HIPCL_ATOMICS(long long)
__HIPCL_ATOMICS(unsigned long long)

#define __HIPCL_FLOAT_ATOMICS(T)                                                                                       \
    template <class F> static inline T __hipcl_update(T* p, F next) {                                                  \
        T old, now;                                                                                                    \
        __atomic_load(p, &old, __ATOMIC_RELAXED);                                                                      \
        do now = next(old);                                                                                            \
        while (!__atomic_compare_exchange(p, &old, &now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));                   \
        return old;                                                                                                    \
    }                                                                                                                  \
    static inline T atomicAdd(T* p, T v) { return __hipcl_update(p, [v](T old) { return old + v; }); }                 \
    static inline T atomicSub(T* p, T v) { return __hipcl_update(p, [v](T old) { return old - v; }); }                 \
    static inline T atomicMax(T* p, T v) { return __hipcl_update(p, [v](T old) { return old < v ? v : old; }); }       \
    static inline T atomicMin(T* p, T v) { return __hipcl_update(p, [v](T old) { return v < old ? v : old; }); }       \
    static inline T atomicExch(T* p, T v) { return __hipcl_update(p, [v](T) { return v; }); }
__HIPCL_FLOAT_ATOMICS(float)
__HIPCL_FLOAT_ATOMICS(double)

static inline unsigned int atomicInc(unsigned int* p, unsigned int limit) {
    unsigned int old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, old >= limit ? 0 : old + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return old;
}
static inline unsigned int atomicDec(unsigned int* p, unsigned int limit) {
    unsigned int old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, old == 0 || old > limit ? limit : old - 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return old;
}

// ---- mathematics ---------------------------------------------------------------------------------------------------------

// The C library's functions, declared as its own header does, so that including that header changes nothing. The plain
// names take a float too, as in HIP; those are templates, which a header's own overload outranks.
template <class T> struct __hipcl_float {};
template <> struct __hipcl_float<float> { typedef float type; };

#define __HIPCL_MATH1(NAME)                                                                                            \
    extern "C" float NAME##f(float) noexcept;                                                                          \
    extern "C" double NAME(double) noexcept;                                                                           \
    template <class T> static inline typename __hipcl_float<T>::type NAME(T x) { return NAME##f(x); }
#define __HIPCL_MATH2(NAME)                                                                                            \
    extern "C" float NAME##f(float, float) noexcept;                                                                   \
    extern "C" double NAME(double, double) noexcept;                                                                   \
    template <class T> static inline typename __hipcl_float<T>::type NAME(T x, T y) { return NAME##f(x, y); }

__HIPCL_MATH1(sin) __HIPCL_MATH1(cos) __HIPCL_MATH1(tan)
__HIPCL_MATH1(asin) __HIPCL_MATH1(acos) __HIPCL_MATH1(atan)
__HIPCL_MATH1(sinh) __HIPCL_MATH1(cosh) __HIPCL_MATH1(tanh)
__HIPCL_MATH1(asinh) __HIPCL_MATH1(acosh) __HIPCL_MATH1(atanh)
__HIPCL_MATH1(exp) __HIPCL_MATH1(exp2) __HIPCL_MATH1(exp10) __HIPCL_MATH1(expm1)
__HIPCL_MATH1(log) __HIPCL_MATH1(log2) __HIPCL_MATH1(log10) __HIPCL_MATH1(log1p)
__HIPCL_MATH1(sqrt) __HIPCL_MATH1(cbrt) __HIPCL_MATH1(fabs)
__HIPCL_MATH1(floor) __HIPCL_MATH1(ceil) __HIPCL_MATH1(trunc) __HIPCL_MATH1(round) __HIPCL_MATH1(rint) __HIPCL_MATH1(nearbyint)
__HIPCL_MATH1(erf) __HIPCL_MATH1(erfc) __HIPCL_MATH1(tgamma) __HIPCL_MATH1(lgamma)
__HIPCL_MATH2(pow) __HIPCL_MATH2(atan2) __HIPCL_MATH2(fmod) __HIPCL_MATH2(remainder) __HIPCL_MATH2(hypot)
__HIPCL_MATH2(fmin) __HIPCL_MATH2(fmax) __HIPCL_MATH2(fdim) __HIPCL_MATH2(copysign)

extern "C" float fmaf(float, float, float) noexcept;
extern "C" double fma(double, double, double) noexcept;
template <class T> static inline typename __hipcl_float<T>::type fma(T x, T y, T z) { return fmaf(x, y, z); }
extern "C" float ldexpf(float, int) noexcept;
extern "C" double ldexp(double, int) noexcept;
extern "C" float frexpf(float, int*) noexcept;
extern "C" double frexp(double, int*) noexcept;
extern "C" float modff(float, float*) noexcept;
extern "C" double modf(double, double*) noexcept;
extern "C" int abs(int) noexcept;
template <class T> static inline typename __hipcl_float<T>::type abs(T x) { return __builtin_fabsf(x); }

// Templates again, because newer C libraries have these names too.
template <class T> struct __hipcl_floating { typedef double type; };
template <> struct __hipcl_floating<float> { typedef float type; };
template <class T> static inline float rsqrtf(T x) { return 1.0f / __builtin_sqrtf((float)x); }
template <class T> static inline typename __hipcl_floating<T>::type rsqrt(T x) { return 1 / sqrt((typename __hipcl_floating<T>::type)x); }
template <class T> static inline float rhypotf(T x, T y) { return 1.0f / hypotf((float)x, (float)y); }
template <class T> static inline typename __hipcl_floating<T>::type rhypot(T x, T y) {
    return 1 / hypot((typename __hipcl_floating<T>::type)x, (typename __hipcl_floating<T>::type)y);
}
extern "C" void sincosf(float, float*, float*) noexcept;
extern "C" void sincos(double, double*, double*) noexcept;
#define __HIPCL_PI 3.14159265358979323846
template <class T> static inline void sincospif(T x, float* s, float* c) { sincosf((float)__HIPCL_PI * (float)x, s, c); }
template <class T> static inline float sinpif(T x) { return sinf((float)__HIPCL_PI * (float)x); }
template <class T> static inline float cospif(T x) { return cosf((float)__HIPCL_PI * (float)x); }
template <class T> static inline typename __hipcl_floating<T>::type sinpi(T x) { return sin((typename __hipcl_floating<T>::type)(__HIPCL_PI * x)); }
template <class T> static inline typename __hipcl_floating<T>::type cospi(T x) { return cos((typename __hipcl_floating<T>::type)(__HIPCL_PI * x)); }
static inline float __saturatef(float x) { return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x; }
// The C library's headers declare names like these for themselves, so they are macros here.
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __expf expf
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __powf powf
#define __sincosf sincosf
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
static inline float __frsqrt_rn(float x) { return rsqrtf(x); }
// The optimiser may not fuse these with what is around them: that is what their name promises.
static inline float __hipcl_unfused(float x) {
    asm("" : "+m"(x));
    return x;
}
static inline float __fmul_rn(float x, float y) { return __hipcl_unfused(x * y); }
static inline float __fadd_rn(float x, float y) { return __hipcl_unfused(__hipcl_unfused(x) + __hipcl_unfused(y)); }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }

template <class T> struct __hipcl_real {};
template <> struct __hipcl_real<float> { typedef bool test; };
template <> struct __hipcl_real<double> { typedef bool test; };
template <class T> static inline typename __hipcl_real<T>::test isnan(T x) { return __builtin_isnan(x); }
template <class T> static inline typename __hipcl_real<T>::test isinf(T x) { return __builtin_isinf(x); }
template <class T> static inline typename __hipcl_real<T>::test isfinite(T x) { return __builtin_isfinite(x); }

#define __HIPCL_MINMAX(R, A, B)                                                                                        \
    static inline R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; }                                                \
    static inline R max(A a, B b) { return (R)a < (R)b ? (R)b : (R)a; }
__HIPCL_MINMAX(int, int, int)
__HIPCL_MINMAX(unsigned int, unsigned int, unsigned int)
__HIPCL_MINMAX(unsigned int, int, unsigned int)
__HIPCL_MINMAX(unsigned int, unsigned int, int)
__HIPCL_MINMAX(long, long, long)
__HIPCL_MINMAX(unsigned long, unsigned long, unsigned long)
__HIPCL_MINMAX(long long, long long, long long)
__HIPCL_MINMAX(unsigned long long, unsigned long long, unsigned long long)
static inline float min(float a, float b) { return __builtin_fminf(a, b); }
static inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
static inline double min(double a, double b) { return __builtin_fmin(a, b); }
static inline double max(double a, double b) { return __builtin_fmax(a, b); }

// ---- bits ------------------------------------------------------------------------------------------------------------------

template <class To, class From> static inline To __hipcl_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "same size");
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}
static inline int __float_as_int(float x) { return __hipcl_bits<int>(x); }
static inline unsigned int __float_as_uint(float x) { return __hipcl_bits<unsigned int>(x); }
static inline float __int_as_float(int x) { return __hipcl_bits<float>(x); }
static inline float __uint_as_float(unsigned int x) { return __hipcl_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return __hipcl_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return __hipcl_bits<double>(x); }
static inline int __popc(unsigned int x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned int)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned int __brev(unsigned int x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
static inline unsigned int __umulhi(unsigned int a, unsigned int b) { return (unsigned int)((unsigned long long)a * b >> 32); }
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline int __mul24(int a, int b) { return a * b; }
static inline unsigned int __umul24(unsigned int a, unsigned int b) { return a * b; }
static inline int __float2int_rn(float x) { return (int)__builtin_rintf(x); }
static inline int __float2int_rz(float x) { return (int)x; }
static inline float __int2float_rn(int x) { return (float)x; }
#if defined(__x86_64__)
static inline long long clock64() { return (long long)__builtin_ia32_rdtsc(); }
#endif
// Ticks of 10 ns, as hipDeviceAttributeWallClockRate says. Declared as the C library does.
struct timespec;
extern "C" int clock_gettime(int, timespec*) noexcept;
static inline long long wall_clock64() {
    long now[2] = {0, 0};
    clock_gettime(1, (timespec*)now);
    return now[0] * 100000000ll + now[1] / 10;
}
template <class T> static inline T __ldg(const T* p) { return *p; }

// ---- constants -----------------------------------------------------------------------------------------------------

// What hip/hip_math_constants.h names: each number rounded to its type, and for some how much is missing (LO).
#define HIP_INF_F __builtin_inff()
#define HIP_NAN_F __builtin_nanf("0x3fffff")
#define HIP_MIN_DENORM_F 0x1p-149f
#define HIP_MAX_NORMAL_F 0x1.fffffep127f
#define HIP_NORM_HUGE_F HIP_MAX_NORMAL_F
#define HIP_NEG_ZERO_F (-0.0f)
#define HIP_ZERO_F 0.0f
#define HIP_ONE_F 1.0f
#define HIP_TWO_TO_M126_F 0x1p-126f
#define HIP_TWO_TO_126_F 0x1p126f
#define HIP_TWO_TO_23_F 0x1p23f
#define HIP_TWO_TO_24_F 0x1p24f
#define HIP_TWO_TO_31_F 0x1p31f
#define HIP_TWO_TO_32_F 0x1p32f
#define HIP_INF __builtin_inf()
#define HIP_NAN (-__builtin_nan(""))
#define HIP_MIN_DENORM 0x1p-1074
#define HIP_NEG_ZERO (-0.0)
#define HIP_ZERO 0.0
#define HIP_ONE 1.0
#define HIP_TWO_TO_M1022 0x1p-1022
#define HIP_TWO_TO_M54 0x1p-54
#define HIP_TWO_TO_23 0x1p23
#define HIP_TWO_TO_52 0x1p52
#define HIP_TWO_TO_53 0x1p53
#define HIP_TWO_TO_54 0x1p54
#define HIP_SQRT_HALF 7.071067811865475244008e-1
#define HIP_SQRT_HALF_F 7.071067811865475244008e-1f
#define HIP_SQRT_TWO 1.414213562373095048802
#define HIP_SQRT_TWO_F 1.414213562373095048802f
#define HIP_THIRD 3.333333333333333333333e-1
#define HIP_THIRD_F 3.333333333333333333333e-1f
#define HIP_TWOTHIRD 6.666666666666666666667e-1
#define HIP_PIO4 7.853981633974483096157e-1
#define HIP_PIO4_F 7.853981633974483096157e-1f
#define HIP_PIO2 1.570796326794896619231
#define HIP_PIO2_F 1.570796326794896619231f
#define HIP_3PIO4 2.356194490192344928847
#define HIP_3PIO4_F 2.356194490192344928847f
#define HIP_2_OVER_PI 6.366197723675813430755e-1
#define HIP_2_OVER_PI_F 6.366197723675813430755e-1f
#define HIP_PI 3.141592653589793238463
#define HIP_PI_F 3.141592653589793238463f
#define HIP_L2E 1.442695040888963407360
#define HIP_L2E_F 1.442695040888963407360f
#define HIP_L2T 3.321928094887362347870
#define HIP_L2T_F 3.321928094887362347870f
#define HIP_LG2 3.010299956639811952137e-1
#define HIP_LG2_F 3.010299956639811952137e-1f
#define HIP_LGE 4.342944819032518276511e-1
#define HIP_LGE_F 4.342944819032518276511e-1f
#define HIP_LN2 6.931471805599453094172e-1
#define HIP_LN2_F 6.931471805599453094172e-1f
#define HIP_LNT 2.302585092994045684018
#define HIP_LNT_F 2.302585092994045684018f
#define HIP_LNPI 1.144729885849400174143
#define HIP_LNPI_F 1.144729885849400174143f
#define HIP_SQRT_2_OVER_PI_F 7.978845608028653558799e-1f
#define HIP_SQRT_2PI 2.506628274631000502416
#define HIP_SQRT_PIO2 1.253314137315500251208
#define HIP_SQRT_2OPI 7.978845608028653558799e-1
#define HIP_LN2_X_1024 7.097827128933839968432e2
#define HIP_LN2_X_1025 7.104758600739439421527e2
#define HIP_LN2_X_1075 7.451332191019412076235e2
#define HIP_LG2_X_1024 3.082547155599167438989e2
#define HIP_LG2_X_1075 3.236072453387797848548e2
#define HIP_SQRT_HALF_HI HIP_SQRT_HALF
#define HIP_SQRT_HALF_LO (-4.833646656726456518594e-17)
#define HIP_PIO4_HI HIP_PIO4
#define HIP_PIO4_LO (3.061616997868382943065e-17)
#define HIP_PIO2_HI HIP_PIO2
#define HIP_PIO2_LO (6.123233995736765886130e-17)
#define HIP_PI_HI HIP_PI
#define HIP_PI_LO (1.224646799147353177226e-16)
#define HIP_SQRT_2PI_HI HIP_SQRT_2PI
#define HIP_SQRT_2PI_LO (-1.832857998045916750791e-16)
#define HIP_SQRT_PIO2_HI HIP_SQRT_PIO2
#define HIP_SQRT_PIO2_LO (-9.164289990229583753957e-17)
#define HIP_L2E_HI HIP_L2E
#define HIP_L2E_LO (2.035527374093103204956e-17)
#define HIP_LG2_HI HIP_LG2
#define HIP_LG2_LO (-2.803728127785170339013e-18)
#define HIP_LGE_HI HIP_LGE
#define HIP_LGE_LO (1.098319650216765109911e-17)
#define HIP_LN2_HI HIP_LN2
#define HIP_LN2_LO (2.319046813846299615495e-17)
#define HIP_LNT_HI HIP_LNT
#define HIP_LNT_LO (-2.170756223382249450604e-16)
#define HIP_SQRT_HALF_HI_F HIP_SQRT_HALF_F
#define HIP_SQRT_HALF_LO_F 1.210161710447896936210e-8f

// ---- bfloat16 ------------------------------------------------------------------------------------------------------

// The upper half of a float, to the nearest even; arithmetic is the float's.
struct hip_bfloat16 {
    unsigned short data;
    enum truncate_t { truncate };

    hip_bfloat16() = default;
    explicit hip_bfloat16(float f) : data(nearest(f)) {}
    explicit hip_bfloat16(float f, truncate_t) : data(cut(f)) {}
    operator float() const { return __uint_as_float((unsigned int)data << 16); }
    hip_bfloat16& operator=(float f) {
        data = nearest(f);
        return *this;
    }
    static hip_bfloat16 round_to_bfloat16(float f) { return hip_bfloat16(f); }
    static hip_bfloat16 round_to_bfloat16(float f, truncate_t) { return hip_bfloat16(f, truncate); }

private:
    // A number that is none stays none: its payload must not be cut to that of infinity.
    static unsigned short cut(float f) {
        unsigned int bits = __float_as_uint(f);
        return (unsigned short)(bits >> 16 | (__builtin_isnan(f) ? 0x40 : 0));
    }
    static unsigned short nearest(float f) {
        if (__builtin_isnan(f)) return cut(f);
        unsigned int bits = __float_as_uint(f);
        return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
};
#define __HIPCL_BFLOAT(OP)                                                                                             \
    static inline hip_bfloat16 operator OP(hip_bfloat16 a, hip_bfloat16 b) { return hip_bfloat16((float)a OP(float) b); } \
    static inline hip_bfloat16& operator OP##=(hip_bfloat16& a, hip_bfloat16 b) { return a = a OP b; }
__HIPCL_BFLOAT(+)
__HIPCL_BFLOAT(-)
__HIPCL_BFLOAT(*)
__HIPCL_BFLOAT(/)
static inline hip_bfloat16 operator-(hip_bfloat16 a) {
    a.data ^= 0x8000;
    return a;
}
static inline hip_bfloat16 operator+(hip_bfloat16 a) { return a; }
static inline bool operator<(hip_bfloat16 a, hip_bfloat16 b) { return (float)a < (float)b; }
static inline bool operator>(hip_bfloat16 a, hip_bfloat16 b) { return b < a; }
static inline bool operator==(hip_bfloat16 a, hip_bfloat16 b) { return (float)a == (float)b; }
static inline bool operator!=(hip_bfloat16 a, hip_bfloat16 b) { return !(a == b); }
static inline bool operator<=(hip_bfloat16 a, hip_bfloat16 b) { return (float)a <= (float)b; }
static inline bool operator>=(hip_bfloat16 a, hip_bfloat16 b) { return b <= a; }
static inline hip_bfloat16& operator++(hip_bfloat16& a) { return a += hip_bfloat16(1.0f); }
static inline hip_bfloat16& operator--(hip_bfloat16& a) { return a -= hip_bfloat16(1.0f); }
static inline bool isinf(hip_bfloat16 a) { return (a.data & 0x7fff) == 0x7f80; }
static inline bool isnan(hip_bfloat16 a) { return (a.data & 0x7fff) > 0x7f80; }
static inline bool iszero(hip_bfloat16 a) { return (a.data & 0x7fff) == 0; }

// ---- complex numbers ---------------------------------------------------------------------------------------------------------

typedef float2 hipFloatComplex;
typedef double2 hipDoubleComplex;
typedef hipFloatComplex hipComplex;

#define __HIPCL_COMPLEX(C, T, S, ROOT)                                                                                 \
    static inline T hipCreal##S(C z) { return z.x; }                                                                   \
    static inline T hipCimag##S(C z) { return z.y; }                                                                   \
    static inline C hipConj##S(C z) { return C{z.x, -z.y}; }                                                           \
    static inline C hipCadd##S(C a, C b) { return C{a.x + b.x, a.y + b.y}; }                                           \
    static inline C hipCsub##S(C a, C b) { return C{a.x - b.x, a.y - b.y}; }                                           \
    static inline C hipCmul##S(C a, C b) { return C{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }                   \
    static inline C hipCfma##S(C a, C b, C c) { return hipCadd##S(hipCmul##S(a, b), c); }                              \
    static inline T hipCsqabs##S(C z) { return z.x * z.x + z.y * z.y; }                                                \
    static inline T hipCabs##S(C z) { return ROOT(hipCsqabs##S(z)); }                                                  \
    static inline C hipCdiv##S(C a, C b) {                                                                             \
        T n = hipCsqabs##S(b);                                                                                         \
        C r = hipCmul##S(a, hipConj##S(b));                                                                            \
        return C{r.x / n, r.y / n};                                                                                    \
    }
__HIPCL_COMPLEX(float2, float, f, __builtin_sqrtf)
__HIPCL_COMPLEX(double2, double, , __builtin_sqrt)
static inline hipFloatComplex make_hipFloatComplex(float re, float im) { return float2{re, im}; }
static inline hipFloatComplex make_hipComplex(float re, float im) { return float2{re, im}; }
static inline hipDoubleComplex make_hipDoubleComplex(double re, double im) { return double2{re, im}; }
static inline hipDoubleComplex hipComplexFloatToDouble(hipFloatComplex z) { return double2{z.x, z.y}; }
static inline hipFloatComplex hipComplexDoubleToFloat(hipDoubleComplex z) { return float2{(float)z.x, (float)z.y}; }

// ---- launching ---------------------------------------------------------------------------------------------------------------

struct __hipcl_parameter {
    unsigned int offset, bytes;
};

struct __hipcl_entry {
    const void* kernel;
    void (*run_blocks)(const __hipcl_launch*, __hipcl_surroundings*, unsigned long first, unsigned long last);
    void (*run_thread)(const __hipcl_launch*, __hipcl_surroundings*, const unsigned int* block, const unsigned int* thread);
    const __hipcl_parameter* parameters;
    unsigned int parameter_count;
    unsigned int has_barrier;
};

struct __hipcl_table {
    unsigned int version, count;
    const __hipcl_entry* entries;
};

template <unsigned long... I> struct __hipcl_indices {};
template <unsigned long N, unsigned long... I> struct __hipcl_count : __hipcl_count<N - 1, N - 1, I...> {};
template <unsigned long... I> struct __hipcl_count<0, I...> {
    typedef __hipcl_indices<I...> type;
};

// Offsets of parameters packed as a structure would hold them.
template <class... A> struct __hipcl_packed {
    static constexpr unsigned long count = sizeof...(A);
    __hipcl_parameter at[count ? count : 1];
    constexpr __hipcl_packed() : at() {
        unsigned long bytes[] = {sizeof(A)..., 0}, aligns[] = {alignof(A)..., 1}, next = 0;
        for (unsigned long i = 0; i < count; ++i) {
            next = (next + aligns[i] - 1) / aligns[i] * aligns[i];
            at[i].offset = (unsigned int)next;
            at[i].bytes = (unsigned int)bytes[i];
            next += bytes[i];
        }
    }
};

// `Index` is the type in which the kernel holds its global index, `Product` the one in which it multiplies block and size: what
// the scan of its source made of it. Other types cost speed only.
template <auto Kernel, class Index = int, class Product = unsigned int> struct __hipcl_kernel;

template <class... A, void (*Kernel)(A...), class Index, class Product> struct __hipcl_kernel<Kernel, Index, Product> {
    static constexpr void (*kernel)(A...) = Kernel;
    static constexpr __hipcl_packed<A...> packed{};

    template <unsigned long I, class T> static inline __attribute__((always_inline)) T argument(const unsigned char* from) {
        return *(const T*)(from + packed.at[I].offset);
    }

    template <unsigned long... I>
    static inline __attribute__((always_inline)) void call(const unsigned char* from, __hipcl_indices<I...>) {
        Kernel(argument<I, A>(from)...);
    }

    static inline __attribute__((always_inline)) void begin(const __hipcl_launch* launch, __hipcl_surroundings* here) {
        __hipcl_here = here;
        blockDim.x = launch->block[0];
        blockDim.y = launch->block[1];
        blockDim.z = launch->block[2];
        gridDim.x = launch->grid[0];
        gridDim.y = launch->grid[1];
        gridDim.z = launch->grid[2];
    }

    // The loops of a block with the arguments in registers. Telling the compiler that no index wraps (the caller checked)
    // makes consecutive threads consecutive addresses to it, and so vector loads and stores of them.
    //
    // The innermost loop walks the global index, in the type the kernel compares it in. `if (i < n)` then compares the loop's
    // own variable, and the compiler makes two loops of it, below `n` and from there on, neither with a comparison. A
    // comparison inside would mask every load, and processors' prefetchers do not see masked loads.
    template <unsigned long... I>
    __attribute__((flatten)) static void rows(const __hipcl_launch* launch, unsigned long first, unsigned long last, __hipcl_indices<I...>, A... a) {
        const unsigned int gx = launch->grid[0], gy = launch->grid[1];
        const unsigned int bx = launch->block[0], by = launch->block[1], bz = launch->block[2];
        if (bx - 1u > 1023u) __builtin_unreachable();
        unsigned int x = (unsigned int)(first % gx), y = (unsigned int)(first / gx % gy), z = (unsigned int)(first / gx / gy);
        blockDim.x = bx;
        for (unsigned long b = first; b < last; ++b) {
            blockIdx.x = x;
            blockIdx.y = y;
            blockIdx.z = z;
            const Product base = (Product)x * (Product)bx;
            const Index start = (Index)base;
            if (start < (Index)0 || start > (Index)(0x7fffffff - 1024)) __builtin_unreachable();
            for (unsigned int tz = 0; tz < bz; ++tz) {
                threadIdx.z = tz;
                for (unsigned int ty = 0; ty < by; ++ty) {
                    threadIdx.y = ty;
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
                    for (Index i = start; i < (Index)(start + bx); ++i) {
                        const Product tx = (Product)i - base;
                        if (i > (Index)0x7fffffff) __builtin_unreachable();
                        // One comparison: GCC 13 and later keep the second of two in the loop, which is then no vector code.
                        if ((unsigned long)tx > 1023ul) __builtin_unreachable();
                        threadIdx.x = (unsigned int)tx;
                        Kernel(a...);
                    }
                    // Nothing is left of the last index, which would keep the loop from being made two.
                    threadIdx.x = 0;
                }
            }
            if (++x == gx) {
                x = 0;
                if (++y == gy) {
                    y = 0;
                    ++z;
                }
            }
        }
    }

    template <unsigned long... I>
    static void rows_with(const __hipcl_launch* launch, unsigned long first, unsigned long last, __hipcl_indices<I...> indices) {
        rows(launch, first, last, indices, argument<I, A>(launch->arguments)...);
    }

    static void run_thread(const __hipcl_launch* launch, __hipcl_surroundings* here, const unsigned int* block, const unsigned int* thread) {
        begin(launch, here);
        blockIdx.x = block[0];
        blockIdx.y = block[1];
        blockIdx.z = block[2];
        threadIdx.x = thread[0];
        threadIdx.y = thread[1];
        threadIdx.z = thread[2];
        call(launch->arguments, typename __hipcl_count<sizeof...(A)>::type());
    }

    static void run_blocks(const __hipcl_launch* launch, __hipcl_surroundings* here, unsigned long first, unsigned long last) {
        begin(launch, here);
        if ((unsigned long)launch->grid[0] * launch->block[0] <= 0x7fffffffu - 1024u) {
            rows_with(launch, first, last, typename __hipcl_count<sizeof...(A)>::type());
            return;
        }
        for (unsigned long b = first; b < last; ++b) {
            const unsigned long gx = launch->grid[0], gy = launch->grid[1];
            const unsigned int block[3] = {(unsigned int)(b % gx), (unsigned int)(b / gx % gy), (unsigned int)(b / gx / gy)};
            unsigned int thread[3];
            for (thread[2] = 0; thread[2] < launch->block[2]; ++thread[2])
                for (thread[1] = 0; thread[1] < launch->block[1]; ++thread[1])
                    for (thread[0] = 0; thread[0] < launch->block[0]; ++thread[0]) run_thread(launch, here, block, thread);
        }
    }
};
