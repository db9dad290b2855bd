/* A word that depends on its place and on the seed, so that a shifted or stale buffer shows. */
uint pattern(ulong i, uint seed)
{
    uint x = (uint)i * 0x9E3779B9u + (uint)(i >> 32) * 0x85EBCA6Bu + seed;
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    return x;
}

__kernel void probe_fill(__global uint *words, uint seed)
{
    words[get_global_id(0)] = pattern(get_global_id(0), seed);
}

__kernel void probe_check(__global const uint *words, uint seed, __global uint *mismatches)
{
    if (words[get_global_id(0)] != pattern(get_global_id(0), seed))
        atomic_inc((volatile __global uint *)mismatches);
}

__kernel void probe_nothing(__global uint *words)
{
}

__kernel void probe_copy(__global const float4 *from, __global float4 *to)
{
    to[get_global_id(0)] = from[get_global_id(0)];
}

/* Tells a stream that this queue has come so far. `data` only puts it after what used that memory, readers included:
   so it is not const, for AMD's runtime lets kernels that only read the same memory run side by side. */
__kernel void probe_signal(__global ulong *word, ulong number, __global uint *data)
{
    *(volatile __global ulong *)word = number;
}
