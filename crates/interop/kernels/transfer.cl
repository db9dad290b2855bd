/* Copies and fills parts of shared memory, in steps of UNIT: a type whose size divides all places and lengths. */

__kernel void copy(__global const UNIT *from, __global UNIT *to, ulong from_begin, ulong to_begin)
{
    size_t i = get_global_id(0);
    to[to_begin + i] = from[from_begin + i];
}

__kernel void fill(__global UNIT *to, ulong begin, uint4 pattern)
{
    const UNIT *units = (const UNIT *)&pattern;
    size_t i = get_global_id(0);
    to[begin + i] = units[i % (sizeof(uint4) / sizeof(UNIT))];
}
