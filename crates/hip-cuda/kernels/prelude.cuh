// HIP's dialect in CUDA's words: what HIPRTC knows without an include and NVRTC does not.
#ifndef HIPCL_PRELUDE
#define HIPCL_PRELUDE

#define __HIPCC_RTC__ 1
#define __HIP__ 1
#define __HIP_PLATFORM_NVIDIA__ 1
#define __HIP_DEVICE_COMPILE__ 1
#define HIP_VERSION_MAJOR 6
#define HIP_VERSION_MINOR 4

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef long ptrdiff_t;

#define HIP_DYNAMIC_SHARED(T, name) extern __shared__ T name[];
#define HIP_DYNAMIC_SHARED_ATTRIBUTE

// Vectors compute element by element in HIP.
#define HIPCL_FN static __device__ __forceinline__
#define HIPCL_EACH1(r, a, op, b) r.x = a x op b x;
#define HIPCL_EACH2(r, a, op, b) HIPCL_EACH1(r, a, op, b) r.y = a y op b y;
#define HIPCL_EACH3(r, a, op, b) HIPCL_EACH2(r, a, op, b) r.z = a z op b z;
#define HIPCL_EACH4(r, a, op, b) HIPCL_EACH3(r, a, op, b) r.w = a w op b w;
#define HIPCL_SAME1(a, b) (a.x == b.x)
#define HIPCL_SAME2(a, b) (HIPCL_SAME1(a, b) && a.y == b.y)
#define HIPCL_SAME3(a, b) (HIPCL_SAME2(a, b) && a.z == b.z)
#define HIPCL_SAME4(a, b) (HIPCL_SAME3(a, b) && a.w == b.w)
#define HIPCL_FILL1(v, s) v.x = s;
#define HIPCL_FILL2(v, s) HIPCL_FILL1(v, s) v.y = s;
#define HIPCL_FILL3(v, s) HIPCL_FILL2(v, s) v.z = s;
#define HIPCL_FILL4(v, s) HIPCL_FILL3(v, s) v.w = s;

#define HIPCL_OPERATORS(V, T, N)                                                                       \
    HIPCL_FN V operator+(V a, V b) { V r; HIPCL_EACH##N(r, a., +, b.) return r; }                      \
    HIPCL_FN V operator-(V a, V b) { V r; HIPCL_EACH##N(r, a., -, b.) return r; }                      \
    HIPCL_FN V operator*(V a, V b) { V r; HIPCL_EACH##N(r, a., *, b.) return r; }                      \
    HIPCL_FN V operator/(V a, V b) { V r; HIPCL_EACH##N(r, a., /, b.) return r; }                      \
    HIPCL_FN V operator*(V a, T s) { V b; HIPCL_FILL##N(b, s) return a * b; }                          \
    HIPCL_FN V operator*(T s, V a) { return a * s; }                                                   \
    HIPCL_FN V operator/(V a, T s) { V b; HIPCL_FILL##N(b, s) return a / b; }                          \
    HIPCL_FN V operator-(V a) { V zero; HIPCL_FILL##N(zero, (T)0) return zero - a; }                   \
    HIPCL_FN V &operator+=(V &a, V b) { return a = a + b; }                                            \
    HIPCL_FN V &operator-=(V &a, V b) { return a = a - b; }                                            \
    HIPCL_FN V &operator*=(V &a, V b) { return a = a * b; }                                            \
    HIPCL_FN V &operator/=(V &a, V b) { return a = a / b; }                                            \
    HIPCL_FN V &operator*=(V &a, T s) { return a = a * s; }                                            \
    HIPCL_FN V &operator/=(V &a, T s) { return a = a / s; }                                            \
    HIPCL_FN bool operator==(V a, V b) { return HIPCL_SAME##N(a, b); }                                 \
    HIPCL_FN bool operator!=(V a, V b) { return !(a == b); }

#define HIPCL_VECTORS(NAME, T)                                                                         \
    HIPCL_OPERATORS(NAME##2, T, 2)                                                                     \
    HIPCL_OPERATORS(NAME##3, T, 3)                                                                     \
    HIPCL_OPERATORS(NAME##4, T, 4)

HIPCL_VECTORS(float, float)
// CUDA 13 would like `double4` to state its alignment; HIP's has one.
#pragma nv_diag_suppress 1444
HIPCL_VECTORS(double, double)
#pragma nv_diag_default 1444
HIPCL_VECTORS(int, int)
HIPCL_VECTORS(uint, unsigned int)

// A warp has 32 lanes here. HIP's exchanges without a mask take part with all lanes that run. CUDA still declares such
// functions for devices of long ago, with other types, so HIP's go by other names.
template <class T> HIPCL_FN T hipcl_shfl(T value, int lane, int width = warpSize) {
    return __shfl_sync(0xffffffffu, value, lane, width);
}
template <class T> HIPCL_FN T hipcl_shfl_up(T value, unsigned int delta, int width = warpSize) {
    return __shfl_up_sync(0xffffffffu, value, delta, width);
}
template <class T> HIPCL_FN T hipcl_shfl_down(T value, unsigned int delta, int width = warpSize) {
    return __shfl_down_sync(0xffffffffu, value, delta, width);
}
template <class T> HIPCL_FN T hipcl_shfl_xor(T value, int mask, int width = warpSize) {
    return __shfl_xor_sync(0xffffffffu, value, mask, width);
}
HIPCL_FN unsigned long long hipcl_ballot(int predicate) { return __ballot_sync(__activemask(), predicate); }
HIPCL_FN int hipcl_any(int predicate) { return __any_sync(__activemask(), predicate); }
HIPCL_FN int hipcl_all(int predicate) { return __all_sync(__activemask(), predicate); }
#define __shfl hipcl_shfl
#define __shfl_up hipcl_shfl_up
#define __shfl_down hipcl_shfl_down
#define __shfl_xor hipcl_shfl_xor
#define __ballot hipcl_ballot
#define __any hipcl_any
#define __all hipcl_all
HIPCL_FN unsigned int __lane_id() {
    unsigned int lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}
HIPCL_FN long long wall_clock64() { return clock64(); }

typedef float2 hipFloatComplex;
typedef double2 hipDoubleComplex;
typedef hipFloatComplex hipComplex;

#define HIPCL_COMPLEX(C, T, SUFFIX, ROOT)                                                              \
    HIPCL_FN T hipCreal##SUFFIX(C z) { return z.x; }                                                   \
    HIPCL_FN T hipCimag##SUFFIX(C z) { return z.y; }                                                   \
    HIPCL_FN C hipConj##SUFFIX(C z) { C r; r.x = z.x; r.y = -z.y; return r; }                          \
    HIPCL_FN T hipCsqabs##SUFFIX(C z) { return z.x * z.x + z.y * z.y; }                                \
    HIPCL_FN T hipCabs##SUFFIX(C z) { return ROOT(z.x * z.x + z.y * z.y); }                            \
    HIPCL_FN C hipCadd##SUFFIX(C a, C b) { C r; r.x = a.x + b.x; r.y = a.y + b.y; return r; }          \
    HIPCL_FN C hipCsub##SUFFIX(C a, C b) { C r; r.x = a.x - b.x; r.y = a.y - b.y; return r; }          \
    HIPCL_FN C hipCmul##SUFFIX(C a, C b) {                                                             \
        C r; r.x = a.x * b.x - a.y * b.y; r.y = a.y * b.x + a.x * b.y; return r;                       \
    }                                                                                                  \
    HIPCL_FN C hipCdiv##SUFFIX(C a, C b) {                                                             \
        T n = b.x * b.x + b.y * b.y;                                                                   \
        C r; r.x = (a.x * b.x + a.y * b.y) / n; r.y = (a.y * b.x - a.x * b.y) / n; return r;           \
    }                                                                                                  \
    HIPCL_FN C hipCfma##SUFFIX(C a, C b, C c) {                                                        \
        C r; r.x = a.x * b.x - a.y * b.y + c.x; r.y = a.y * b.x + a.x * b.y + c.y; return r;           \
    }

HIPCL_COMPLEX(hipFloatComplex, float, f, sqrtf)
HIPCL_COMPLEX(hipDoubleComplex, double, , sqrt)
HIPCL_FN hipFloatComplex make_hipFloatComplex(float re, float im) { return make_float2(re, im); }
HIPCL_FN hipFloatComplex make_hipComplex(float re, float im) { return make_float2(re, im); }
HIPCL_FN hipDoubleComplex make_hipDoubleComplex(double re, double im) { return make_double2(re, im); }

#endif
