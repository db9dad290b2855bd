/* Turns each complex sample by an angle that grows with its place: a shift in frequency. */
__kernel void shift(__global float2 *x, float cycles_per_sample)
{
    size_t i = get_global_id(0);
    float turn = cycles_per_sample * (float)i;
    float angle = 6.28318530718f * (turn - floor(turn));
    float c = cos(angle), s = sin(angle);
    float2 v = x[i];
    x[i] = (float2)(v.x * c - v.y * s, v.x * s + v.y * c);
}
