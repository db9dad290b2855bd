// The kernels of a CPU: eight complex numbers at a time.

typedef ulong8 Lanes;

// v times the factor w, kept as (re, re, -im, im).
static inline V times(V v, float4 w) {
    V re = (V)(w.xy, w.xy, w.xy, w.xy, w.xy, w.xy, w.xy, w.xy);
    V im = (V)(w.zw, w.zw, w.zw, w.zw, w.zw, w.zw, w.zw, w.zw);
    return fma(v, re, SWAP(v) * im);
}

// Transposes 8 x 8 complex numbers, each moved as one lane.
static inline void transpose(V *v) {
    Lanes r[8], s[8];
    for (uint i = 0; i < 8; ++i)
        r[i] = as_ulong8(v[i]);
    for (uint i = 0; i < 8; i += 2) {
        s[i] = (Lanes)(r[i].s0, r[i + 1].s0, r[i].s2, r[i + 1].s2, r[i].s4, r[i + 1].s4, r[i].s6, r[i + 1].s6);
        s[i + 1] = (Lanes)(r[i].s1, r[i + 1].s1, r[i].s3, r[i + 1].s3, r[i].s5, r[i + 1].s5, r[i].s7, r[i + 1].s7);
    }
    for (uint h = 0; h < 8; h += 4)
        for (uint i = h; i < h + 2; ++i) {
            r[i] = (Lanes)(s[i].s01, s[i + 2].s01, s[i].s45, s[i + 2].s45);
            r[i + 2] = (Lanes)(s[i].s23, s[i + 2].s23, s[i].s67, s[i + 2].s67);
        }
    for (uint i = 0; i < 4; ++i) {
        v[i] = as_float16((Lanes)(r[i].s0123, r[i + 4].s0123));
        v[i + 4] = as_float16((Lanes)(r[i].s4567, r[i + 4].s4567));
    }
}

#define LOAD_A(i) A[i]
#define LOAD_B(i) B[i]
#define STORE_A(i, v) A[i] = v
#define STORE_B(i, v) B[i] = v

#define PASS(R, M, S, FACTORS, LOAD, STORE)                                                        \
    for (uint p = 0; p < M; ++p) {                                                                 \
        float4 w[R];                                                                               \
        for (uint j = 1; j < R; ++j)                                                               \
            w[j] = vload4(p * (R - 1) + j - 1, factors + FACTORS);                                 \
        for (uint q = 0; q < S; ++q) {                                                             \
            V a[R];                                                                                \
            for (uint j = 0; j < R; ++j)                                                           \
                a[j] = LOAD(q + S * (p + M * j));                                                  \
            fft##R(a);                                                                             \
            STORE(q + S * R * p, a[0]);                                                            \
            for (uint j = 1; j < R; ++j)                                                           \
                STORE(q + S * (R * p + j), times(a[j], w[j]));                                     \
        }                                                                                          \
    }

// The last pass, whose factors are all one.
#define LAST(R, S, LOAD, STORE)                                                                    \
    for (uint q = 0; q < S; ++q) {                                                                 \
        V a[R];                                                                                    \
        for (uint j = 0; j < R; ++j)                                                               \
            a[j] = LOAD(q + S * j);                                                                \
        fft##R(a);                                                                                 \
        for (uint j = 0; j < R; ++j)                                                               \
            STORE(q + S * j, a[j]);                                                                \
    }

#define KERNEL kernel __attribute__((reqd_work_group_size(1, 1, 1)))

#ifdef FFT_ROWS
// One transform of length 8 * FFT_N at a time. The first pass, of radix 8, goes across the lanes;
// what remains are eight interleaved transforms of length FFT_N.
// LINES is the number of transforms of a work-item. FFT_STAGED reads a row in order first: the eight
// streams of a short row are too short for a processor's prefetcher.

KERNEL void fft_rows(global const In *in, global Out *out, global const float *factors,
                     global const float2 *first ENDS_PARAMS, ulong in_offset, ulong out_offset,
                     ulong batch) {
    V A[FFT_N];
    V B[FFT_N];
    const ulong begin = get_global_id(0) * (ulong)LINES;
    const ulong end = min(begin + LINES, batch);
    for (ulong line = begin; line < end; ++line) {
        global const In *x = in + in_offset + line * LOAD_DISTANCE;
        global Out *y = out + out_offset + line * STORE_DISTANCE;
#ifdef FFT_STAGED
        for (uint i = 0; i < FFT_N; ++i)
            B[i] = LOAD8(x, 8 * i);
#define FIRST_LOAD(i) vload16(0, (private const float *)B + 2 * (i))
#else
#define FIRST_LOAD(i) LOAD8(x, i)
#endif
        for (uint block = 0; block < FFT_N; block += 8) {
            // The last block may overlap the one before, whose results it repeats.
            const uint p = min(block, (uint)FFT_N - 8);
            V a[8];
            for (uint j = 0; j < 8; ++j)
                a[j] = FIRST_LOAD(p + FFT_N * j);
            fft8(a);
            for (uint j = 1; j < 8; ++j)
                a[j] = times_each(a[j], load8(first + (j - 1) * FFT_N + p));
            transpose(a);
            for (uint j = 0; j < 8; ++j)
                A[p + j] = a[j];
        }
#define STORE_OUT(i, v) STORE8(y, 8 * (i), v)
        FFT_BODY
    }
}
#endif

#ifdef FFT_COLUMNS
// Eight transforms of length FFT_N at a time, which lie one behind the other. BLOCKS is the number
// of such eights of a work-item.

KERNEL void fft_columns(global const In *in, global Out *out,
                        global const float *factors ENDS_PARAMS, ulong in_offset, ulong out_offset,
                        ulong batch) {
    V A[FFT_N];
    V B[FFT_N];
    const ulong begin = get_global_id(0) * (ulong)(8 * BLOCKS);
    const ulong end = min(begin + 8 * BLOCKS, batch);
    for (ulong column = begin; column < end; column += 8) {
        const uint count = (uint)min((ulong)8, end - column);
        global const In *x = in + in_offset + column * LOAD_DISTANCE;
        global Out *y = out + out_offset + column * STORE_DISTANCE;
        uint i = 0;
        for (; i + 8 <= FFT_N; i += 8) {
            V t[8];
            for (uint c = 0; c < 8; ++c)
                t[c] = LOAD8(x + min(c, count - 1) * LOAD_DISTANCE, i);
            transpose(t);
            for (uint k = 0; k < 8; ++k)
                A[i + k] = t[k];
        }
        for (; i < FFT_N; ++i) {
            float2 t[8];
            for (uint c = 0; c < 8; ++c)
                t[c] = LOAD(x + min(c, count - 1) * LOAD_DISTANCE, i);
            A[i] = (V)(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]);
        }
        FFT_BODY
        for (i = 0; i + 8 <= FFT_N; i += 8) {
            V t[8];
            for (uint k = 0; k < 8; ++k)
                t[k] = RESULT[i + k];
            transpose(t);
            for (uint c = 0; c < count; ++c)
                STORE8(y + c * STORE_DISTANCE, i, t[c]);
        }
        for (; i < FFT_N; ++i) {
            float2 t[8];
            vstore16(RESULT[i], 0, (private float *)t);
            for (uint c = 0; c < count; ++c)
                STORE(y + c * STORE_DISTANCE, i, t[c]);
        }
    }
}
#endif

#ifdef FFT_SPLIT
// A transform of length HEIGHT * WIDTH as two steps over a matrix of HEIGHT rows, eight columns at a
// time. Step one (FFT_TURN defined) transforms the columns, multiplies by the factors between the
// steps and writes the matrix transposed; step two transforms the columns of that in place, which
// leaves the result in order. FFT_N is HEIGHT.

KERNEL void fft_split(global const In *in, global Out *out, global const float *factors,
                      global const float2 *coarse, global const float2 *fine,
                      global const float2 *beside ENDS_PARAMS, ulong in_offset, ulong out_offset) {
    V A[FFT_N];
    V B[FFT_N];
    // The last eight may begin among those before, whose results it must not write: factors that
    // start from another column round otherwise.
    const uint column = min((uint)get_global_id(0) * 8, (uint)WIDTH - 8);
    const uint repeated = (uint)get_global_id(0) * 8 - column;
    global const In *x = in + in_offset + get_global_id(1) * LOAD_DISTANCE;
    global Out *y = out + out_offset + get_global_id(1) * STORE_DISTANCE;
#define LOAD_IN(i) LOAD8(x, WIDTH * (i) + column)
#define STORE_OUT(i, v) STORE8(y, WIDTH * (i) + column, v)
    FFT_BODY
#ifdef FFT_TURN
    for (uint i = 0; i < FFT_N; i += 8) {
        V t[8];
        for (uint k = 0; k < 8; ++k) {
            const ulong turn = (ulong)(i + k) * column;
            const float2 w = product(coarse[turn >> FINE_BITS], fine[turn & ((1 << FINE_BITS) - 1)]);
            const V row = times(load8(beside + 8 * (i + k)), (float4)(w.x, w.x, -w.y, w.y));
            t[k] = times_each(RESULT[i + k], row);
        }
        transpose(t);
        for (uint c = 0; c < 8; ++c)
            if (c >= repeated)
                STORE8(y, (column + c) * FFT_N + i, t[c]);
    }
#endif
}
#endif
