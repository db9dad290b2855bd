// Transforms in the registers of a work-group, which holds a tile of COLUMNS transforms of length
// FFT_N, ITEMS work-items for each. Between two passes the work-items exchange their numbers
// through local memory.
//
//   FFT_FIRST   defined: the transforms are the columns of matrices of FFT_N rows and WIDTH columns.
//               They are multiplied by the factors between the two steps and written in blocks of
//               BLOCK rows: number k of column c as [k / BLOCK][c][k % BLOCK].
//   FFT_SECOND  defined: the transforms lie in blocks of COLUMNS, as the first step wrote them, and
//               are written as the columns of matrices of WIDTH columns.
//               With neither the transforms are rows, one behind the other.
//   FFT_WHOLE   defined: complex numbers are exchanged. Otherwise first the real and then the
//               imaginary parts, which takes half the memory and twice the barriers.
//   FFT_ANY_GROUP defined: the size of the work-groups is not told to the compiler
//   PITCH       words of local memory for a transform, the padding included

//   FFT_SWAPPED defined: the last pass belongs to other work-items, of which MIX neighbours have
//               numbers of one column

#define WORDS (COLUMNS * PITCH)
#define UNROLL _Pragma("unroll")

// Where a number lies in local memory.
#define ACROSS(place) ((place) * COLUMNS + column)
#define ALONG(place) (column * PITCH + (place))
#define LAST_ALONG(place) (last_column * PITCH + (place))

// Whether every work-item has this butterfly; known to the compiler where the radix divides evenly.
#define HAS(b, R) (FFT_N / (R) % ITEMS == 0 || (b) < FFT_N / (R))

#define READ(a, R, EACH)                                                                           \
    float2 a[EACH][R];                                                                             \
    UNROLL for (uint e = 0; e < EACH; ++e) {                                                       \
        const uint b = item + e * ITEMS;                                                           \
        UNROLL for (uint j = 0; j < R; ++j)                                                        \
            a[e][j] = INSIDE && HAS(b, R) ? IN(b, j, R) : (float2)(0.0f);                          \
    }

#define WRITE(a, R, EACH)                                                                          \
    UNROLL for (uint e = 0; e < EACH; ++e) {                                                       \
        const uint b = last_item + e * ITEMS;                                                      \
        if (LAST_INSIDE && HAS(b, R))                                                              \
            UNROLL for (uint j = 0; j < R; ++j)                                                    \
                OUT(b, j, R, a[e][j]);                                                             \
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
    UNROLL for (uint e = 0; e < EACH; ++e) {                                                       \
        const uint b = item + e * ITEMS;                                                           \
        fft##R(a[e]);                                                                              \
        if (HAS(b, R))                                                                             \
            twist(a[e], R, roots[b - b % S]);                                                      \
    }

#ifdef FFT_FIRST
#define root(turn)                                                                                 \
    product(coarse[(turn) >> FINE_BITS], fine[(turn) & ((1 << FINE_BITS) - 1)])
#define LAST(a, R, EACH)                                                                           \
    {                                                                                              \
        const float2 step = LAST_INSIDE ? root((FFT_N / R) * last_place) : (float2)(0.0f);         \
        UNROLL for (uint e = 0; e < EACH; ++e) {                                                   \
            const uint b = last_item + e * ITEMS;                                                  \
            fft##R(a[e]);                                                                          \
            if (LAST_INSIDE && HAS(b, R))                                                          \
                twist_from(a[e], R, root(b * last_place), step);                                   \
        }                                                                                          \
    }
#else
#define LAST(a, R, EACH)                                                                           \
    UNROLL for (uint e = 0; e < EACH; ++e)                                                         \
        fft##R(a[e]);
#endif

// Number k of a transform lies PAD words further for each BLOCK before it, so that the numbers that
// neighbouring work-items write lie in different banks. Within a butterfly of the writer and, by
// NEXT words, within one of the reader the distance is constant.
#define PADDED(k, BLOCK, PAD) ((k) + (PAD) * ((k) / (BLOCK)))

#define PUT(WORD, a, R, EACH, S, BLOCK, PAD, PART)                                                 \
    UNROLL for (uint e = 0; e < EACH; ++e) {                                                       \
        const uint b = item + e * ITEMS, k = b % S + R * (b - b % S);                              \
        if (HAS(b, R))                                                                             \
            UNROLL for (uint j = 0; j < R; ++j)                                                    \
                work[WORD(PADDED(k, BLOCK, PAD) + S * j)] = a[e][j] PART;                          \
    }

// A work-item without the butterfly gets zeros: it transforms them too, and AMD's compiler takes the
// use of a number without a value as proof that the work-item has one.
#define GET(WORD, READER, a, R, EACH, NEXT, BLOCK, PAD, PART)                                      \
    UNROLL for (uint e = 0; e < EACH; ++e) {                                                       \
        const uint b = READER + e * ITEMS;                                                         \
        UNROLL for (uint j = 0; j < R; ++j)                                                        \
            a[e][j] PART =                                                                         \
                HAS(b, R) ? work[WORD(PADDED(b, BLOCK, PAD) + NEXT * j)] : (Word)(0.0f);           \
    }

// In place, what one work-item read another one overwrites: the first exchange orders that too.
#define FIRST_FENCE (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define LATER_FENCE CLK_LOCAL_MEM_FENCE
// The words of the exchange before have been read.
#define FIRST_WAIT
#define LATER_WAIT barrier(CLK_LOCAL_MEM_FENCE);

#ifdef FFT_WHOLE
typedef float2 Word;
#define EXCHANGE(WHEN, TO, FROM, READER, a, R, EACH, S, c, R2, EACH2, NEXT, BLOCK, PAD)            \
    float2 c[EACH2][R2];                                                                           \
    WHEN##_WAIT                                                                                    \
    PUT(TO, a, R, EACH, S, BLOCK, PAD, )                                                           \
    barrier(WHEN##_FENCE);                                                                         \
    GET(FROM, READER, c, R2, EACH2, NEXT, BLOCK, PAD, )
#else
typedef float Word;
#define EXCHANGE(WHEN, TO, FROM, READER, a, R, EACH, S, c, R2, EACH2, NEXT, BLOCK, PAD)            \
    float2 c[EACH2][R2];                                                                           \
    WHEN##_WAIT                                                                                    \
    PUT(TO, a, R, EACH, S, BLOCK, PAD, .x)                                                         \
    barrier(WHEN##_FENCE);                                                                         \
    GET(FROM, READER, c, R2, EACH2, NEXT, BLOCK, PAD, .x)                                          \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    PUT(TO, a, R, EACH, S, BLOCK, PAD, .y)                                                         \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    GET(FROM, READER, c, R2, EACH2, NEXT, BLOCK, PAD, .y)
#endif

#ifdef FFT_ANY_GROUP
#define TILE kernel
#else
#define TILE kernel __attribute__((reqd_work_group_size(COLUMNS * ITEMS, 1, 1)))
#endif

// Number j of butterfly b, in steps of STEP from `first` on. Where a number is read or written as it is, the distances
// are constants, which addresses may hold.
#ifdef LOAD_FUSED
#define LOAD_AT(first, b, j, R, STEP) LOAD(x, (first) + ((b) + (j) * (FFT_N / (R))) * (STEP))
#else
#define LOAD_AT(first, b, j, R, STEP)                                                              \
    (x + (first))[(b) * (STEP) + (j) * ((ulong)(FFT_N / (R)) * (STEP))]
#endif
#ifdef STORE_FUSED
#define STORE_AT(first, b, j, R, STEP, v) STORE(y, (first) + ((b) + (j) * (FFT_N / (R))) * (STEP), v)
#else
#define STORE_AT(first, b, j, R, STEP, v)                                                          \
    (y + (first))[(b) * (STEP) + (j) * ((ulong)(FFT_N / (R)) * (STEP))] = v
#endif

#if defined(FFT_FIRST) || defined(FFT_SECOND)

#ifdef FFT_FIRST
#define INSIDE (WIDTH % COLUMNS == 0 || place < WIDTH)
#define LAST_INSIDE (WIDTH % COLUMNS == 0 || last_place < WIDTH)
#define IN(b, j, R) LOAD_AT(place, b, j, R, WIDTH)
#define BLOCKED(k) ((k) / BLOCK * (BLOCK * WIDTH) + (k) % BLOCK)
#define OUT(b, j, R, v)                                                                            \
    (y + last_place * BLOCK)[FFT_N / (R) % BLOCK == 0                                              \
                                 ? BLOCKED(b) + (j) * ((ulong)(FFT_N / (R)) * WIDTH)               \
                                 : BLOCKED((b) + (j) * (FFT_N / (R)))] = v
#else
#define INSIDE true
#define LAST_INSIDE true
#define IN(b, j, R) LOAD_AT(begin * FFT_N + column, b, j, R, COLUMNS)
#define OUT(b, j, R, v) STORE_AT(place, b, j, R, WIDTH, v)
#endif

TILE void fft_tile(global const In *in, global Out *out, global const float2 *roots,
                   global const float2 *coarse, global const float2 *fine ENDS_PARAMS,
                   ulong in_offset, ulong out_offset) {
    local Word work[WORDS];
    const uint id = get_local_id(0);
    // Neighbouring work-items read numbers of neighbouring columns.
    const uint column = id % COLUMNS, item = id / COLUMNS;
#ifdef FFT_SWAPPED
    const uint last_column = id / MIX % COLUMNS, last_item = id / (MIX * COLUMNS) * MIX + id % MIX;
#else
    const uint last_column = column, last_item = item;
#endif
    const uint begin = (uint)get_group_id(0) * COLUMNS;
    const uint place = begin + column, last_place = begin + last_column;
    global const In *x = in + in_offset + get_group_id(1) * LOAD_DISTANCE;
    global Out *y = out + out_offset + get_group_id(1) * STORE_DISTANCE;
    FFT_BODY
}

#else
#define INSIDE (row < batch)
#define LAST_INSIDE INSIDE
#define IN(b, j, R) LOAD_AT(0, b, j, R, 1)
#define OUT(b, j, R, v) STORE_AT(0, b, j, R, 1, v)

TILE void fft_tile(global const In *in, global Out *out, global const float2 *roots ENDS_PARAMS,
                   ulong in_offset, ulong out_offset, ulong batch) {
    local Word work[WORDS];
    const uint id = get_local_id(0);
    // Neighbouring work-items read neighbouring numbers of a row.
    const uint column = id / ITEMS, item = id % ITEMS, last_item = item;
    const ulong row = get_group_id(0) * (ulong)COLUMNS + column;
    global const In *x = in + in_offset + row * LOAD_DISTANCE;
    global Out *y = out + out_offset + row * STORE_DISTANCE;
    FFT_BODY
}
#endif
