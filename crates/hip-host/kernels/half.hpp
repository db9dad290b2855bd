// hip/hip_fp16.h for the machine's C++ compiler: half precision is the compiler's own `_Float16`, which rounds every
// operation to it, as the GPU does. What HIP defines as classes are plain types here: `__half` is the number itself.
#pragma once

typedef _Float16 __half;
typedef _Float16 half;

struct __half_raw {
    union {
        _Float16 data;
        unsigned short x;
    };
    operator __half() const { return data; }
};

struct alignas(4) __half2 {
    __half x, y;
    __half2() = default;
    constexpr __half2(__half x, __half y) : x(x), y(y) {}
    explicit constexpr __half2(__half both) : x(both), y(both) {}
};
typedef __half2 half2;

static inline __half min(__half a, __half b) { return b < a || a != a ? b : a; }
static inline __half max(__half a, __half b) { return a < b || a != a ? b : a; }
static inline __half abs(__half a) { return (__half)__builtin_fabsf(a); }

// ---- conversions -----------------------------------------------------------------------------------------------------

static inline unsigned short __half_as_ushort(__half h) { return __hipcl_bits<unsigned short>(h); }
static inline short __half_as_short(__half h) { return __hipcl_bits<short>(h); }
static inline __half __ushort_as_half(unsigned short bits) { return __hipcl_bits<__half>(bits); }
static inline __half __short_as_half(short bits) { return __hipcl_bits<__half>(bits); }

// `f` rounded down (-1), up (1) or to zero (0).
static inline __half __hipcl_rounded(float f, int toward) {
    const __half nearest = (__half)f;
    const bool up = toward ? toward > 0 : f < 0;
    if (!(up ? (float)nearest < f : (float)nearest > f)) return nearest;
    // Halves of one sign are ordered like their bits; a zero's neighbours are the smallest of each sign.
    const unsigned short bits = __half_as_ushort(nearest);
    if (!(bits & 0x7fff)) return __ushort_as_half(up ? 1 : 0x8001);
    return __ushort_as_half(up == !(bits & 0x8000) ? bits + 1 : bits - 1);
}

static inline __half __float2half(float f) { return (__half)f; }
static inline __half __float2half_rn(float f) { return (__half)f; }
static inline __half __float2half_rz(float f) { return __hipcl_rounded(f, 0); }
static inline __half __float2half_rd(float f) { return __hipcl_rounded(f, -1); }
static inline __half __float2half_ru(float f) { return __hipcl_rounded(f, 1); }
static inline float __half2float(__half h) { return (float)h; }
static inline __half __double2half(double d) { return (__half)d; }

#define __HIPCL_HALF_INT(NAME, T)                                                                                      \
    static inline __half __##NAME##2half_rn(T i) { return (__half)i; }                                                 \
    static inline T __half2##NAME##_rn(__half h) { return (T)__builtin_rintf(h); }                                     \
    static inline T __half2##NAME##_rz(__half h) { return (T)__builtin_truncf(h); }                                    \
    static inline T __half2##NAME##_rd(__half h) { return (T)__builtin_floorf(h); }                                    \
    static inline T __half2##NAME##_ru(__half h) { return (T)__builtin_ceilf(h); }
__HIPCL_HALF_INT(int, int)
__HIPCL_HALF_INT(uint, unsigned int)
__HIPCL_HALF_INT(short, short)
__HIPCL_HALF_INT(ushort, unsigned short)
__HIPCL_HALF_INT(ll, long long)
__HIPCL_HALF_INT(ull, unsigned long long)

// ---- one number ------------------------------------------------------------------------------------------------------

static inline __half __hipcl_saturated(__half h) { return h > (__half)0 ? h < (__half)1 ? h : (__half)1 : (__half)0; }
static inline __half __hadd(__half a, __half b) { return a + b; }
static inline __half __hsub(__half a, __half b) { return a - b; }
static inline __half __hmul(__half a, __half b) { return a * b; }
static inline __half __hdiv(__half a, __half b) { return a / b; }
// The product is exact in `double`; the sum is rounded there first, far below a half's last bit.
static inline __half __hfma(__half a, __half b, __half c) { return (__half)((double)a * (double)b + (double)c); }
static inline __half __hadd_sat(__half a, __half b) { return __hipcl_saturated(a + b); }
static inline __half __hsub_sat(__half a, __half b) { return __hipcl_saturated(a - b); }
static inline __half __hmul_sat(__half a, __half b) { return __hipcl_saturated(a * b); }
static inline __half __hfma_sat(__half a, __half b, __half c) { return __hipcl_saturated(__hfma(a, b, c)); }
static inline __half __hneg(__half a) { return -a; }
static inline __half __habs(__half a) { return abs(a); }
static inline __half __hmin(__half a, __half b) { return min(a, b); }
static inline __half __hmax(__half a, __half b) { return max(a, b); }
static inline __half __hmin_nan(__half a, __half b) { return a != a ? a : b != b ? b : min(a, b); }
static inline __half __hmax_nan(__half a, __half b) { return a != a ? a : b != b ? b : max(a, b); }
static inline bool __hisnan(__half a) { return a != a; }
static inline int __hisinf(__half a) { return __builtin_isinf_sign((float)a); }

// Ordered comparisons are false for a NaN, unordered ones true.
static inline bool __heq(__half a, __half b) { return a == b; }
static inline bool __hne(__half a, __half b) { return a < b || a > b; }
static inline bool __hlt(__half a, __half b) { return a < b; }
static inline bool __hle(__half a, __half b) { return a <= b; }
static inline bool __hgt(__half a, __half b) { return a > b; }
static inline bool __hge(__half a, __half b) { return a >= b; }
static inline bool __hequ(__half a, __half b) { return !__hne(a, b); }
static inline bool __hneu(__half a, __half b) { return !(a == b); }
static inline bool __hltu(__half a, __half b) { return !(a >= b); }
static inline bool __hleu(__half a, __half b) { return !(a > b); }
static inline bool __hgtu(__half a, __half b) { return !(a <= b); }
static inline bool __hgeu(__half a, __half b) { return !(a < b); }

#define __HIPCL_HALF_MATH(NAME, VALUE)                                                                                 \
    static inline __half h##NAME(__half h) {                                                                           \
        const float x = h;                                                                                             \
        return (__half)(VALUE);                                                                                        \
    }                                                                                                                  \
    static inline __half2 h2##NAME(__half2 h) { return __half2(h##NAME(h.x), h##NAME(h.y)); }
__HIPCL_HALF_MATH(sqrt, __builtin_sqrtf(x))
__HIPCL_HALF_MATH(rsqrt, 1.0f / __builtin_sqrtf(x))
__HIPCL_HALF_MATH(rcp, 1.0f / x)
__HIPCL_HALF_MATH(exp, expf(x))
__HIPCL_HALF_MATH(exp2, exp2f(x))
__HIPCL_HALF_MATH(exp10, exp10f(x))
__HIPCL_HALF_MATH(log, logf(x))
__HIPCL_HALF_MATH(log2, log2f(x))
__HIPCL_HALF_MATH(log10, log10f(x))
__HIPCL_HALF_MATH(sin, sinf(x))
__HIPCL_HALF_MATH(cos, cosf(x))
__HIPCL_HALF_MATH(floor, __builtin_floorf(x))
__HIPCL_HALF_MATH(ceil, __builtin_ceilf(x))
__HIPCL_HALF_MATH(trunc, __builtin_truncf(x))
__HIPCL_HALF_MATH(rint, __builtin_rintf(x))

// ---- two numbers -----------------------------------------------------------------------------------------------------

static inline __half2 make_half2(__half x, __half y) { return __half2(x, y); }
static inline __half2 __halves2half2(__half x, __half y) { return __half2(x, y); }
static inline __half2 __half2half2(__half both) { return __half2(both); }
static inline __half2 __float2half2_rn(float both) { return __half2((__half)both); }
static inline __half2 __floats2half2_rn(float x, float y) { return __half2((__half)x, (__half)y); }
static inline __half2 __float22half2_rn(float2 f) { return __half2((__half)f.x, (__half)f.y); }
static inline float2 __half22float2(__half2 h) { return float2{(float)h.x, (float)h.y}; }
static inline __half __low2half(__half2 h) { return h.x; }
static inline __half __high2half(__half2 h) { return h.y; }
static inline float __low2float(__half2 h) { return h.x; }
static inline float __high2float(__half2 h) { return h.y; }
static inline __half2 __low2half2(__half2 h) { return __half2(h.x); }
static inline __half2 __high2half2(__half2 h) { return __half2(h.y); }
static inline __half2 __lowhigh2highlow(__half2 h) { return __half2(h.y, h.x); }
static inline __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
static inline __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }

#define __HIPCL_HALF2(OP)                                                                                              \
    static inline __half2 operator OP(__half2 a, __half2 b) { return __half2(a.x OP b.x, a.y OP b.y); }                \
    static inline __half2& operator OP##=(__half2& a, __half2 b) { return a = a OP b; }
__HIPCL_HALF2(+) __HIPCL_HALF2(-) __HIPCL_HALF2(*) __HIPCL_HALF2(/)
static inline __half2 operator-(__half2 a) { return __half2(-a.x, -a.y); }
static inline bool operator==(__half2 a, __half2 b) { return a.x == b.x && a.y == b.y; }
static inline bool operator!=(__half2 a, __half2 b) { return !(a == b); }

#define __HIPCL_HALF2_CALL(NAME)                                                                                       \
    static inline __half2 __h##NAME##2(__half2 a, __half2 b) {                                                         \
        return __half2(__h##NAME(a.x, b.x), __h##NAME(a.y, b.y));                                                      \
    }
__HIPCL_HALF2_CALL(add) __HIPCL_HALF2_CALL(sub) __HIPCL_HALF2_CALL(mul) __HIPCL_HALF2_CALL(min) __HIPCL_HALF2_CALL(max)
static inline __half2 __h2div(__half2 a, __half2 b) { return a / b; }
static inline __half2 __hneg2(__half2 a) { return -a; }
static inline __half2 __habs2(__half2 a) { return __half2(abs(a.x), abs(a.y)); }
static inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
    return __half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
