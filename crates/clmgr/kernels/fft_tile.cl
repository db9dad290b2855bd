// Transforms in the registers of a work-group, which holds a tile of COLUMNS transforms of length
// FFT_N, ITEMS work-items for each. Between two passes the work-items exchange their numbers
// through local memory.
//
//   FFT_MATRIX  undefined: the transforms are rows, one behind the other.
//               Defined: they are the columns of matrices of FFT_N rows and WIDTH columns.
//   FFT_TURN    defined: the columns are multiplied by the factors between the two steps and written
//               as rows, which transposes the matrix.
//   FFT_WHOLE   defined: complex numbers are exchanged. Otherwise first the real and then the
//               imaginary parts, which takes half the memory and twice the barriers.
//   PITCH       words of local memory for a transform, the padding included

#define WORDS (COLUMNS * PITCH)

// Neighbouring work-items read neighbouring numbers: along the transform if it is a row, else
// across the columns.
#ifdef FFT_MATRIX
#define COLUMN_OF(id) ((id) % COLUMNS)
#define ITEM_OF(id) ((id) / COLUMNS)
#define WORD(place) ((place) * COLUMNS + column)
#else
#define COLUMN_OF(id) ((id) / ITEMS)
#define ITEM_OF(id) ((id) % ITEMS)
#define WORD(place) (column * PITCH + (place))
#endif

// Whether every work-item has this butterfly; known to the compiler where the radix divides evenly.
#define HAS(b, R) (FFT_N / (R) % ITEMS == 0 || (b) < FFT_N / (R))

#define READ(a, R, EACH)                                                                           \
    float2 a[EACH][R];                                                                             \
    for (uint e = 0; e < EACH; ++e) {                                                              \
        const uint b = item + e * ITEMS;                                                           \
        for (uint j = 0; j < R; ++j)                                                               \
            a[e][j] = INSIDE && HAS(b, R) ? IN(b + j * (FFT_N / R)) : (float2)(0.0f);              \
    }

#define WRITE(a, R, EACH)                                                                          \
    for (uint e = 0; e < EACH; ++e) {                                                              \
        const uint b = item + e * ITEMS;                                                           \
        if (INSIDE && HAS(b, R))                                                                   \
            for (uint j = 0; j < R; ++j)                                                           \
                OUT(b + j * (FFT_N / R), a[e][j]);                                                 \
    }

// a[j] times w^j. Four powers are kept at a time: registers are scarcer than products.
static inline void twist(float2 *a, uint radix, float2 w) {
    const float2 w2 = product(w, w), w3 = product(w2, w), w4 = product(w2, w2);
    float2 base = w4;
    a[1] = product(a[1], w);
    if (radix > 2)
        a[2] = product(a[2], w2);
    if (radix > 3)
        a[3] = product(a[3], w3);
    for (uint j = 4; j < radix; j += 4) {
        a[j] = product(a[j], base);
        if (j + 1 < radix)
            a[j + 1] = product(a[j + 1], product(base, w));
        if (j + 2 < radix)
            a[j + 2] = product(a[j + 2], product(base, w2));
        if (j + 3 < radix)
            a[j + 3] = product(a[j + 3], product(base, w3));
        base = product(base, w4);
    }
}

// a[j] times start * w^j.
static inline void twist_from(float2 *a, uint radix, float2 start, float2 w) {
    const float2 w2 = product(w, w), w4 = product(w2, w2);
    float2 f0 = start, f1 = product(start, w), f2 = product(start, w2), f3 = product(f1, w2);
    for (uint j = 0; j < radix; j += 4) {
        a[j] = product(a[j], f0);
        if (j + 1 < radix)
            a[j + 1] = product(a[j + 1], f1);
        if (j + 2 < radix)
            a[j + 2] = product(a[j + 2], f2);
        if (j + 3 < radix)
            a[j + 3] = product(a[j + 3], f3);
        f0 = product(f0, w4);
        f1 = product(f1, w4);
        f2 = product(f2, w4);
        f3 = product(f3, w4);
    }
}

// A pass that others follow: S is the product of the radices before it.
#define PASS(a, R, EACH, S)                                                                        \
    for (uint e = 0; e < EACH; ++e) {                                                              \
        const uint b = item + e * ITEMS;                                                           \
        fft##R(a[e]);                                                                              \
        if (HAS(b, R))                                                                             \
            twist(a[e], R, roots[b - b % S]);                                                      \
    }

#ifdef FFT_TURN
#define LAST(a, R, EACH)                                                                           \
    {                                                                                              \
        const float2 step = root((FFT_N / R) * place);                                             \
        for (uint e = 0; e < EACH; ++e) {                                                          \
            const uint b = item + e * ITEMS;                                                       \
            fft##R(a[e]);                                                                          \
            if (HAS(b, R))                                                                         \
                twist_from(a[e], R, root(b * place), step);                                        \
        }                                                                                          \
    }
#define root(turn)                                                                                 \
    product(coarse[(turn) >> FINE_BITS], fine[(turn) & ((1 << FINE_BITS) - 1)])
#else
#define LAST(a, R, EACH)                                                                           \
    for (uint e = 0; e < EACH; ++e)                                                                \
        fft##R(a[e]);
#endif

// Number k of a transform lies PAD words further for each BLOCK before it, so that the numbers that
// neighbouring work-items write lie in different banks. Within a butterfly of the writer and, by
// NEXT words, within one of the reader the distance is constant.
#define PADDED(k, BLOCK, PAD) ((k) + (PAD) * ((k) / (BLOCK)))

#define PUT(a, R, EACH, S, BLOCK, PAD, PART)                                                       \
    for (uint e = 0; e < EACH; ++e) {                                                              \
        const uint b = item + e * ITEMS, k = b % S + R * (b - b % S);                              \
        if (HAS(b, R))                                                                             \
            for (uint j = 0; j < R; ++j)                                                           \
                work[WORD(PADDED(k, BLOCK, PAD) + S * j)] = a[e][j] PART;                          \
    }

#define GET(a, R, EACH, NEXT, BLOCK, PAD, PART)                                                    \
    for (uint e = 0; e < EACH; ++e) {                                                              \
        const uint b = item + e * ITEMS;                                                           \
        if (HAS(b, R))                                                                             \
            for (uint j = 0; j < R; ++j)                                                           \
                a[e][j] PART = work[WORD(PADDED(b, BLOCK, PAD) + NEXT * j)];                       \
    }

// In place, what one work-item read another one overwrites: the first exchange orders that too.
#define FIRST_FENCE (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define LATER_FENCE CLK_LOCAL_MEM_FENCE
// The words of the exchange before have been read.
#define FIRST_WAIT
#define LATER_WAIT barrier(CLK_LOCAL_MEM_FENCE);

#ifdef FFT_WHOLE
#define EXCHANGE(WHEN, a, R, EACH, S, c, R2, EACH2, NEXT, BLOCK, PAD)                              \
    float2 c[EACH2][R2];                                                                           \
    WHEN##_WAIT                                                                                    \
    PUT(a, R, EACH, S, BLOCK, PAD, )                                                               \
    barrier(WHEN##_FENCE);                                                                         \
    GET(c, R2, EACH2, NEXT, BLOCK, PAD, )
typedef float2 Word;
#else
#define EXCHANGE(WHEN, a, R, EACH, S, c, R2, EACH2, NEXT, BLOCK, PAD)                              \
    float2 c[EACH2][R2];                                                                           \
    WHEN##_WAIT                                                                                    \
    PUT(a, R, EACH, S, BLOCK, PAD, .x)                                                             \
    barrier(WHEN##_FENCE);                                                                         \
    GET(c, R2, EACH2, NEXT, BLOCK, PAD, .x)                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    PUT(a, R, EACH, S, BLOCK, PAD, .y)                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    GET(c, R2, EACH2, NEXT, BLOCK, PAD, .y)
typedef float Word;
#endif

#define TILE kernel __attribute__((reqd_work_group_size(COLUMNS * ITEMS, 1, 1)))

#ifdef FFT_MATRIX
#define INSIDE (WIDTH % COLUMNS == 0 || place < WIDTH)
#define IN(i) x[(i) * WIDTH]
#ifdef FFT_TURN
#define OUT(i, v) y[i] = v
#else
#define OUT(i, v) y[(i) * WIDTH] = v
#endif

TILE void fft_tile(global const float2 *in, global float2 *out, global const float2 *roots,
                   global const float2 *coarse, global const float2 *fine, ulong in_offset,
                   ulong out_offset) {
    local Word work[WORDS];
    const uint column = COLUMN_OF((uint)get_local_id(0)), item = ITEM_OF((uint)get_local_id(0));
    const uint place = (uint)get_group_id(0) * COLUMNS + column;
    const ulong offset = get_group_id(1) * ((ulong)FFT_N * WIDTH);
    global const float2 *x = in + in_offset + offset + place;
#ifdef FFT_TURN
    global float2 *y = out + out_offset + offset + place * FFT_N;
#else
    global float2 *y = out + out_offset + offset + place;
#endif
    FFT_BODY
}

#else
#define INSIDE (row < batch)
#define IN(i) x[i]
#define OUT(i, v) y[i] = v

TILE void fft_tile(global const float2 *in, global float2 *out, global const float2 *roots,
                   ulong batch) {
    local Word work[WORDS];
    const uint column = COLUMN_OF((uint)get_local_id(0)), item = ITEM_OF((uint)get_local_id(0));
    const ulong row = get_group_id(0) * (ulong)COLUMNS + column;
    global const float2 *x = in + row * FFT_N;
    global float2 *y = out + row * FFT_N;
    FFT_BODY
}
#endif
