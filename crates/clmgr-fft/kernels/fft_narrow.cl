// Transforms in local memory, and in passes over global memory: one complex number at a time.

#ifdef FFT_LOCAL
// GROUP transforms of length FFT_N in the local memory of a work-group of ITEMS work-items.

#define READ_IN(t, i)                                                                              \
    (first + t < batch ? LOAD(in + in_offset + (first + t) * LOAD_DISTANCE, i) : (float2)(0.0f))
#define READ_LOCAL(t, i) work[t * FFT_N + i]
#define WRITE_LOCAL(t, i, v) work[t * FFT_N + i] = v
#define WRITE_OUT(t, i, v)                                                                         \
    if (first + t < batch)                                                                         \
    STORE(out + out_offset + (first + t) * STORE_DISTANCE, i, v)

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
void fft_local(global const In *in, global Out *out, global const float *factors ENDS_PARAMS,
               ulong in_offset, ulong out_offset, ulong batch) {
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
    kernel void NAME(global const In *in, global Out *out, global const float2 *coarse,            \
                     global const float2 *fine ENDS_PARAMS, ulong in_offset, ulong out_offset) {   \
        const uint i = get_global_id(0), p = i / S, q = i % S;                                     \
        global const In *x = in + in_offset + get_global_id(1) * LOAD_DISTANCE;                    \
        global Out *y = out + out_offset + get_global_id(1) * STORE_DISTANCE;                      \
        float2 a[R];                                                                               \
        for (uint j = 0; j < R; ++j)                                                               \
            a[j] = LOAD(x, i + j * (FFT_N / R));                                                   \
        fft##R(a);                                                                                 \
        const uint turn = p * S;                                                                   \
        const float2 w = product(coarse[turn >> FINE_BITS], fine[turn & ((1 << FINE_BITS) - 1)]);  \
        float2 power[R];                                                                           \
        power[0] = (float2)(1.0f, 0.0f);                                                           \
        for (uint j = 1; j < R; ++j)                                                               \
            power[j] = j == 1 ? w : product(power[j / 2], power[j - j / 2]);                       \
        STORE(y, q + S * R * p, a[0]);                                                             \
        for (uint j = 1; j < R; ++j)                                                               \
            STORE(y, q + S * (R * p + j), product(a[j], power[j]));                                \
    }

FFT_BODY
#endif
