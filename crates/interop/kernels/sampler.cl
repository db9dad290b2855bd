/* A block of samples: quarters from -32 to 31.75, the same for everyone who knows the formula. */
uint mixed(uint v)
{
    v *= 2654435761u;
    v ^= v >> 15;
    v *= 2246822519u;
    return v ^ (v >> 13);
}

__kernel void sampler(__global float2 *samples, uint block)
{
    uint i = (uint)get_global_id(0);
    uint v = mixed(i + 65536u * block);
    samples[i] = (float2)(((int)(v & 255u) - 128) * 0.25f, ((int)((v >> 8) & 255u) - 128) * 0.25f);
}
