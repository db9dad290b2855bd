// The ends of a transform: how its first kernel reads a row of the input, and how its last one writes a row of the
// output.
//
//   LOAD_DISTANCE  from a row of the input to the next, in the input's numbers
//   LOAD_FUSED     defined: what the transform gets is made from the input while it is read, by
//     LOAD_STRIDE  from a number of a row to the next
//     LOAD_LEN     the numbers of a row; LOAD_SHORT defined: those that the transform asks for behind them are zero
//     LOAD_SCALE   or LOAD_WINDOW, defined: each number is multiplied by this, or by its factor in `load_window`
//     and one of
//       LOAD_COMPLEX    as they are
//       LOAD_REAL       real numbers
//       LOAD_PAIRS      real numbers, of which two make a complex one
//       LOAD_HERMITIAN  the first half of a spectrum of the odd length HERMITIAN, whose other half is its mirror
//       LOAD_HALVES     the first half of a spectrum of length 2 * HALF, as the transform of such pairs; needs
//                       `load_roots`, exp(2 pi i k / (2 * HALF))
//     LOAD_CHIRP   defined: and then multiplied by `load_chirp`, which has this many factors; behind them is zero
//   STORE_DISTANCE, STORE_FUSED, STORE_STRIDE  likewise, with
//     STORE_SCALE  defined: the result is multiplied by this
//     STORE_CHIRP  defined: and by its factor in `store_chirp`
//     STORE_LEN    defined: the transform's numbers from here on are not kept
//     and one of
//       STORE_COMPLEX   as they are
//       STORE_REAL      their real parts
//       STORE_PAIRS     their real and imaginary parts as two real numbers

#ifdef LOAD_WINDOW
#define LOAD_WINDOW_PARAM , global const float *load_window
#define LOAD_WINDOW_ARG , load_window
#else
#define LOAD_WINDOW_PARAM
#define LOAD_WINDOW_ARG
#endif
#ifdef LOAD_HALVES
#define LOAD_ROOTS_PARAM , global const float2 *load_roots
#define LOAD_ROOTS_ARG , load_roots
#else
#define LOAD_ROOTS_PARAM
#define LOAD_ROOTS_ARG
#endif
#ifdef LOAD_CHIRP
#define LOAD_CHIRP_PARAM , global const float2 *load_chirp
#define LOAD_CHIRP_ARG , load_chirp
#else
#define LOAD_CHIRP_PARAM
#define LOAD_CHIRP_ARG
#endif
#ifdef STORE_CHIRP
#define STORE_PARAMS , global const float2 *store_chirp
#define STORE_ARGS , store_chirp
#else
#define STORE_PARAMS
#define STORE_ARGS
#endif
#define LOAD_PARAMS LOAD_WINDOW_PARAM LOAD_ROOTS_PARAM LOAD_CHIRP_PARAM
#define LOAD_ARGS LOAD_WINDOW_ARG LOAD_ROOTS_ARG LOAD_CHIRP_ARG
#define ENDS_PARAMS LOAD_PARAMS STORE_PARAMS

#if defined(LOAD_REAL) || defined(LOAD_PAIRS)
typedef float In;
#else
typedef float2 In;
#endif
#if defined(STORE_REAL) || defined(STORE_PAIRS)
typedef float Out;
#else
typedef float2 Out;
#endif

#ifdef LOAD_FUSED

// Number i of a row of the input.
static inline In given(global const In *x LOAD_WINDOW_PARAM, uint i) {
#ifdef LOAD_SHORT
    if (i >= LOAD_LEN)
        return (In)(0.0f);
#endif
#if defined(LOAD_WINDOW)
    return x[i * LOAD_STRIDE] * load_window[i];
#elif defined(LOAD_SCALE)
    return x[i * LOAD_STRIDE] * LOAD_SCALE;
#else
    return x[i * LOAD_STRIDE];
#endif
}
#define GIVEN(i) given(x LOAD_WINDOW_ARG, i)

// Number i of a row of what is transformed.
static inline float2 load_one(global const In *x LOAD_PARAMS, uint i) {
#ifdef LOAD_CHIRP
    if (i >= LOAD_CHIRP)
        return (float2)(0.0f);
#endif
#if defined(LOAD_COMPLEX)
    float2 v = GIVEN(i);
#elif defined(LOAD_REAL)
    float2 v = (float2)(GIVEN(i), 0.0f);
#elif defined(LOAD_PAIRS)
    float2 v = (float2)(GIVEN(2 * i), GIVEN(2 * i + 1));
#elif defined(LOAD_HERMITIAN)
    const bool mirrored = i > HERMITIAN / 2;
    float2 v = GIVEN(mirrored ? HERMITIAN - i : i);
    v.y = i == 0 ? 0.0f : mirrored ? -v.y : v.y;
#elif defined(LOAD_HALVES)
    float2 a = GIVEN(i), b = GIVEN(HALF - i);
    // The first and the middle number of a real signal's spectrum are real.
    a.y = i == 0 ? 0.0f : a.y;
    b.y = i == 0 ? 0.0f : b.y;
    const float2 turned = product((float2)(a.x - b.x, a.y + b.y), load_roots[i]);
    float2 v = (float2)(a.x + b.x - turned.y, a.y - b.y + turned.x);
#endif
#ifdef LOAD_CHIRP
    v = product(v, load_chirp[i]);
#endif
    return v;
}
#define LOAD(x, i) load_one(x LOAD_ARGS, i)

#ifdef FFT_WIDE
static inline V load_eight(global const In *x LOAD_PARAMS, uint i) {
#if LOAD_STRIDE == 1 && (defined(LOAD_COMPLEX) || defined(LOAD_PAIRS))
#ifdef LOAD_PAIRS
    bool whole = 2 * i + 16 <= LOAD_LEN;
#else
    bool whole = i + 8 <= LOAD_LEN;
#endif
#ifdef LOAD_CHIRP
    whole = whole && i + 8 <= LOAD_CHIRP;
#endif
    if (whole) {
        V v = vload16(0, (global const float *)(x) + 2 * i);
#if defined(LOAD_WINDOW) && defined(LOAD_PAIRS)
        v *= vload16(0, load_window + 2 * i);
#elif defined(LOAD_WINDOW)
        v *= vload8(0, load_window + i).s0011223344556677;
#elif defined(LOAD_SCALE)
        v *= LOAD_SCALE;
#endif
#ifdef LOAD_CHIRP
        v = times_each(v, load8(load_chirp + i));
#endif
        return v;
    }
#endif
    float2 t[8];
    for (uint c = 0; c < 8; ++c)
        t[c] = LOAD(x, i + c);
    return (V)(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]);
}
#define LOAD8(x, i) load_eight(x LOAD_ARGS, i)
#endif

#else
#define LOAD(x, i) (x)[i]
#define LOAD8(x, i) load8((x) + (i))
#endif

#ifdef STORE_FUSED

// Writes number i of a row of the result.
static inline void store_one(global Out *y STORE_PARAMS, uint i, float2 v) {
#ifdef STORE_LEN
    if (i >= STORE_LEN)
        return;
#endif
#ifdef STORE_CHIRP
    v = product(v, store_chirp[i]);
#endif
#ifdef STORE_SCALE
    v *= STORE_SCALE;
#endif
#if defined(STORE_COMPLEX)
    y[i * STORE_STRIDE] = v;
#elif defined(STORE_REAL)
    y[i * STORE_STRIDE] = v.x;
#elif defined(STORE_PAIRS)
    y[2 * i * STORE_STRIDE] = v.x;
    y[(2 * i + 1) * STORE_STRIDE] = v.y;
#endif
}
#define STORE(y, i, v) store_one(y STORE_ARGS, i, v)

#ifdef FFT_WIDE
static inline void store_eight(global Out *y STORE_PARAMS, uint i, V v) {
#if STORE_STRIDE == 1 && !defined(STORE_REAL)
#ifdef STORE_LEN
    if (i + 8 <= STORE_LEN)
#endif
    {
#ifdef STORE_CHIRP
        v = times_each(v, load8(store_chirp + i));
#endif
#ifdef STORE_SCALE
        v *= STORE_SCALE;
#endif
        vstore16(v, 0, (global float *)(y) + 2 * i);
        return;
    }
#endif
    float2 t[8];
    vstore16(v, 0, (private float *)t);
    for (uint c = 0; c < 8; ++c)
        STORE(y, i + c, t[c]);
}
#define STORE8(y, i, v) store_eight(y STORE_ARGS, i, v)
#endif

#else
#define STORE(y, i, v) (y)[i] = v
#define STORE8(y, i, v) store8(v, (y) + (i))
#endif
