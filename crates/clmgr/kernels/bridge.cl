// Copies from a buffer of another context; offsets and lengths are in units of the element.

kernel void copy_16(global const uint4 *from, ulong from_at, global uint4 *to, ulong to_at)
{
    size_t i = get_global_id(0);
    to[to_at + i] = from[from_at + i];
}

kernel void copy_4(global const uint *from, ulong from_at, global uint *to, ulong to_at)
{
    size_t i = get_global_id(0);
    to[to_at + i] = from[from_at + i];
}

kernel void copy_1(global const uchar *from, ulong from_at, global uchar *to, ulong to_at)
{
    size_t i = get_global_id(0);
    to[to_at + i] = from[from_at + i];
}
