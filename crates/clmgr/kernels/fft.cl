// Batched complex FFT of length 2^a 3^b 5^c, by Stockham's method.
//
// The plan (src/fft) puts defines in front of this text:
//   FFT_N      length of the transforms that the kernel's passes make
//   FFT_SIGN   1.0f forward, -1.0f inverse
//   FFT_WIDE   defined: V is eight complex numbers, one work-item transforms eight columns at once.
//              Otherwise V is one complex number.
//   one of FFT_ROWS, FFT_COLUMNS, FFT_SPLIT, FFT_LOCAL, FFT_PASSES, and what that one needs
//   FFT_BODY   the passes, in order
//
// A pass of radix R over a transform of length N, with S the product of the radices before it and
// M = N / (R * S), does for all p < M and q < S:
//   y[q + S * (R * p + j)] = w^(p j) * (transform of length R of x[q + S * (p + M * i)])[j]
// with w = exp(-2 pi i / (R * M)) for the forward direction.

#ifdef FFT_WIDE
typedef float16 V;
#define SWAP(v) ((v).s1032547698badcfe)
#define ALTERNATING(a, b) ((V)(a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b))
#else
typedef float2 V;
#define SWAP(v) ((v).yx)
#define ALTERNATING(a, b) ((V)(a, b))
#endif

// a - i b forward, a + i b inverse; and the opposite.
#define ADD_TURNED(a, b) fma(SWAP(b), ALTERNATING(FFT_SIGN, -FFT_SIGN), a)
#define SUB_TURNED(a, b) fma(SWAP(b), ALTERNATING(-FFT_SIGN, FFT_SIGN), a)
#define TURNED(b) (SWAP(b) * ALTERNATING(FFT_SIGN, -FFT_SIGN))

#define SIN_60 0.866025403784438647f
#define COS_72 0.309016994374947424f
#define SIN_72 0.951056516295153572f
#define COS_144 -0.809016994374947424f
#define SIN_144 0.587785252292473129f
#define SQRT_HALF 0.707106781186547524f
#define COS_22 0.923879532511286756f
#define SIN_22 0.382683432365089772f

static inline void fft1(V *a) {}

static inline void fft2(V *a) {
    V t = a[0] - a[1];
    a[0] += a[1];
    a[1] = t;
}

static inline void fft3(V *a) {
    V sum = a[1] + a[2];
    V difference = (a[1] - a[2]) * SIN_60;
    V base = fma(sum, (V)(-0.5f), a[0]);
    a[0] += sum;
    a[1] = ADD_TURNED(base, difference);
    a[2] = SUB_TURNED(base, difference);
}

static inline void fft4(V *a) {
    V s02 = a[0] + a[2], d02 = a[0] - a[2];
    V s13 = a[1] + a[3], d13 = a[1] - a[3];
    a[0] = s02 + s13;
    a[1] = ADD_TURNED(d02, d13);
    a[2] = s02 - s13;
    a[3] = SUB_TURNED(d02, d13);
}

static inline void fft5(V *a) {
    V s14 = a[1] + a[4], d14 = a[1] - a[4];
    V s23 = a[2] + a[3], d23 = a[2] - a[3];
    V base1 = fma(s23, (V)(COS_144), fma(s14, (V)(COS_72), a[0]));
    V base2 = fma(s23, (V)(COS_72), fma(s14, (V)(COS_144), a[0]));
    V side1 = fma(d23, (V)(SIN_144), d14 * SIN_72);
    V side2 = fma(d23, (V)(-SIN_72), d14 * SIN_144);
    a[0] += s14 + s23;
    a[1] = ADD_TURNED(base1, side1);
    a[2] = ADD_TURNED(base2, side2);
    a[3] = SUB_TURNED(base2, side2);
    a[4] = SUB_TURNED(base1, side1);
}

static inline void fft8(V *a) {
    V even[4] = {a[0], a[2], a[4], a[6]};
    V odd[4] = {a[1], a[3], a[5], a[7]};
    fft4(even);
    fft4(odd);
    V odd1 = ADD_TURNED(odd[1], odd[1]) * SQRT_HALF;
    V odd3 = SUB_TURNED(odd[3], odd[3]) * -SQRT_HALF;
    a[0] = even[0] + odd[0];
    a[4] = even[0] - odd[0];
    a[1] = even[1] + odd1;
    a[5] = even[1] - odd1;
    a[2] = ADD_TURNED(even[2], odd[2]);
    a[6] = SUB_TURNED(even[2], odd[2]);
    a[3] = even[3] + odd3;
    a[7] = even[3] - odd3;
}

// v times cos - i sin forward, its conjugate inverse.
#define ROTATED(v, cosine, sine) fma(v, (V)(cosine), TURNED(v) * (sine))

static inline void fft16(V *a) {
    V b[4][4];
    for (uint i = 0; i < 4; ++i) {
        b[i][0] = a[i];
        b[i][1] = a[i + 4];
        b[i][2] = a[i + 8];
        b[i][3] = a[i + 12];
        fft4(b[i]);
    }
    b[1][1] = ROTATED(b[1][1], COS_22, SIN_22);
    b[1][2] = ADD_TURNED(b[1][2], b[1][2]) * SQRT_HALF;
    b[1][3] = ROTATED(b[1][3], SIN_22, COS_22);
    b[2][1] = ADD_TURNED(b[2][1], b[2][1]) * SQRT_HALF;
    b[2][2] = TURNED(b[2][2]);
    b[2][3] = SUB_TURNED(b[2][3], b[2][3]) * -SQRT_HALF;
    b[3][1] = ROTATED(b[3][1], SIN_22, COS_22);
    b[3][2] = SUB_TURNED(b[3][2], b[3][2]) * -SQRT_HALF;
    b[3][3] = ROTATED(b[3][3], -COS_22, -SIN_22);
    for (uint k = 0; k < 4; ++k) {
        V c[4] = {b[0][k], b[1][k], b[2][k], b[3][k]};
        fft4(c);
        a[k] = c[0];
        a[k + 4] = c[1];
        a[k + 8] = c[2];
        a[k + 12] = c[3];
    }
}

#ifdef FFT_WIDE

typedef ulong8 Lanes;

// v times the factor w, kept as (re, re, -im, im).
static inline V times(V v, float4 w) {
    V re = (V)(w.xy, w.xy, w.xy, w.xy, w.xy, w.xy, w.xy, w.xy);
    V im = (V)(w.zw, w.zw, w.zw, w.zw, w.zw, w.zw, w.zw, w.zw);
    return fma(v, re, SWAP(v) * im);
}

// The products of eight pairs of complex numbers.
static inline V times_each(V v, V w) {
    V re = w.s0022446688aaccee;
    V im = w.s1133557799bbddff * ALTERNATING(-1.0f, 1.0f);
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

static inline V load8(global const float2 *from) { return vload16(0, (global const float *)from); }
static inline void store8(V v, global float2 *to) { vstore16(v, 0, (global float *)to); }

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

KERNEL void fft_rows(global const float2 *in, global float2 *out, global const float *factors,
                     global const float2 *first, ulong batch) {
    V A[FFT_N];
    V B[FFT_N];
    const ulong begin = get_global_id(0) * (ulong)LINES;
    const ulong end = min(begin + LINES, batch);
    for (ulong line = begin; line < end; ++line) {
        global const float2 *x = in + line * (8 * FFT_N);
        global float2 *y = out + line * (8 * FFT_N);
#ifdef FFT_STAGED
        for (uint i = 0; i < FFT_N; ++i)
            B[i] = load8(x + 8 * i);
#define FIRST_LOAD(i) vload16(0, (private const float *)B + 2 * (i))
#else
#define FIRST_LOAD(i) load8(x + (i))
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
#define STORE_OUT(i, v) store8(v, y + 8 * (i))
        FFT_BODY
    }
}
#endif

#ifdef FFT_COLUMNS
// Eight transforms of length FFT_N at a time, which lie one behind the other. BLOCKS is the number
// of such eights of a work-item.

KERNEL void fft_columns(global const float2 *in, global float2 *out, global const float *factors,
                        ulong batch) {
    V A[FFT_N];
    V B[FFT_N];
    const ulong begin = get_global_id(0) * (ulong)(8 * BLOCKS);
    const ulong end = min(begin + 8 * BLOCKS, batch);
    for (ulong column = begin; column < end; column += 8) {
        const uint count = (uint)min((ulong)8, end - column);
        global const float2 *x = in + column * FFT_N;
        global float2 *y = out + column * FFT_N;
        uint i = 0;
        for (; i + 8 <= FFT_N; i += 8) {
            V t[8];
            for (uint c = 0; c < 8; ++c)
                t[c] = load8(x + min(c, count - 1) * FFT_N + i);
            transpose(t);
            for (uint k = 0; k < 8; ++k)
                A[i + k] = t[k];
        }
        for (; i < FFT_N; ++i) {
            float2 t[8];
            for (uint c = 0; c < 8; ++c)
                t[c] = x[min(c, count - 1) * FFT_N + i];
            A[i] = (V)(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]);
        }
        FFT_BODY
        for (i = 0; i + 8 <= FFT_N; i += 8) {
            V t[8];
            for (uint k = 0; k < 8; ++k)
                t[k] = RESULT[i + k];
            transpose(t);
            for (uint c = 0; c < count; ++c)
                store8(t[c], y + c * FFT_N + i);
        }
        for (; i < FFT_N; ++i) {
            float2 t[8];
            vstore16(RESULT[i], 0, (private float *)t);
            for (uint c = 0; c < count; ++c)
                y[c * FFT_N + i] = t[c];
        }
    }
}
#endif

#ifdef FFT_SPLIT
// A transform of length HEIGHT * WIDTH as two steps over a matrix of HEIGHT rows, eight columns at a
// time. Step one (FFT_TURN defined) transforms the columns, multiplies by the factors between the
// steps and writes the matrix transposed; step two transforms the columns of that in place, which
// leaves the result in order. FFT_N is HEIGHT.

static inline float2 product(float2 a, float2 b) {
    return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

KERNEL void fft_split(global const float2 *in, global float2 *out, global const float *factors,
                      global const float2 *coarse, global const float2 *fine,
                      global const float2 *beside, ulong in_offset, ulong out_offset) {
    V A[FFT_N];
    V B[FFT_N];
    // The last eight may begin among those before, whose results it must not write: factors that
    // start from another column round otherwise.
    const uint column = min((uint)get_global_id(0) * 8, (uint)WIDTH - 8);
    const uint repeated = (uint)get_global_id(0) * 8 - column;
    const ulong offset = get_global_id(1) * ((ulong)FFT_N * WIDTH);
    global const float2 *x = in + in_offset + offset + column;
    global float2 *y = out + out_offset + offset;
#define LOAD_IN(i) load8(x + (ulong)WIDTH * (i))
#define STORE_OUT(i, v) store8(v, y + column + (ulong)WIDTH * (i))
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
                store8(t[c], y + (ulong)(column + c) * FFT_N + i);
    }
#endif
}
#endif

#else // one complex number at a time

static inline float2 product(float2 a, float2 b) {
    return (float2)(fma(a.x, b.x, -a.y * b.y), fma(a.x, b.y, a.y * b.x));
}

#ifdef FFT_LOCAL
// GROUP transforms of length FFT_N in the local memory of a work-group of ITEMS work-items.

#define READ_IN(t, i) (first + t < batch ? in[(first + t) * FFT_N + i] : (float2)(0.0f))
#define READ_LOCAL(t, i) work[t * FFT_N + i]
#define WRITE_LOCAL(t, i, v) work[t * FFT_N + i] = v
#define WRITE_OUT(t, i, v)                                                                         \
    if (first + t < batch)                                                                         \
    out[(first + t) * FFT_N + i] = v

// In place, what one work-item read another one overwrites.
#define READ_IN_FENCE (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define READ_LOCAL_FENCE CLK_LOCAL_MEM_FENCE

// EACH is the number of butterflies of a work-item. They are held in registers between the two
// barriers, so that one buffer is enough. The second one orders the reads from global memory too,
// which have ended by then.
#define PASS(R, M, S, FACTORS, EACH, READ, WRITE)                                                  \
    {                                                                                              \
        float2 a[EACH][R];                                                                         \
        for (uint e = 0; e < EACH; ++e) {                                                          \
            const uint b = item + e * ITEMS;                                                       \
            if (b < GROUP * (FFT_N / R))                                                           \
                for (uint j = 0; j < R; ++j)                                                       \
                    a[e][j] = READ(b / (FFT_N / R), b % (FFT_N / R) + j * (FFT_N / R));            \
        }                                                                                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        for (uint e = 0; e < EACH; ++e) {                                                          \
            const uint b = item + e * ITEMS;                                                       \
            if (b < GROUP * (FFT_N / R)) {                                                         \
                const uint t = b / (FFT_N / R), i = b % (FFT_N / R), p = i / S, q = i % S;         \
                fft##R(a[e]);                                                                      \
                WRITE(t, q + S * R * p, a[e][0]);                                                  \
                for (uint j = 1; j < R; ++j) {                                                     \
                    const float2 v = M == 1 ? a[e][j]                                              \
                                            : product(a[e][j], vload2(p * (R - 1) + j - 1, factors + FACTORS)); \
                    WRITE(t, q + S * (R * p + j), v);                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        barrier(READ##_FENCE);                                                                     \
    }

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void fft_local(global const float2 *in, global float2 *out, global const float *factors, ulong batch) {
    local float2 work[GROUP * FFT_N];
    const uint item = get_local_id(0);
    const ulong first = get_group_id(0) * (ulong)GROUP;
    FFT_BODY
}
#endif

#ifdef FFT_PASSES
// One pass in global memory, a butterfly per work-item: for transforms that fit nowhere else. The
// factor of a butterfly is the product of an entry of a coarse and of a fine table.

#define PASS(NAME, R, M, S)                                                                        \
    kernel void NAME(global const float2 *in, global float2 *out, global const float2 *coarse,     \
                     global const float2 *fine, ulong in_offset, ulong out_offset) {               \
        const uint i = get_global_id(0), p = i / S, q = i % S;                                     \
        const ulong offset = get_global_id(1) * (ulong)FFT_N;                                      \
        global const float2 *x = in + in_offset + offset;                                          \
        global float2 *y = out + out_offset + offset;                                              \
        float2 a[R];                                                                               \
        for (uint j = 0; j < R; ++j)                                                               \
            a[j] = x[i + (ulong)j * (FFT_N / R)];                                                  \
        fft##R(a);                                                                                 \
        const uint turn = p * S;                                                                   \
        const float2 w = product(coarse[turn >> FINE_BITS], fine[turn & ((1 << FINE_BITS) - 1)]);  \
        float2 power[R];                                                                           \
        power[0] = (float2)(1.0f, 0.0f);                                                           \
        for (uint j = 1; j < R; ++j)                                                               \
            power[j] = j == 1 ? w : product(power[j / 2], power[j - j / 2]);                       \
        y[q + (ulong)S * R * p] = a[0];                                                            \
        for (uint j = 1; j < R; ++j)                                                               \
            y[q + (ulong)S * (R * p + j)] = product(a[j], power[j]);                               \
    }

FFT_BODY
#endif

#endif
