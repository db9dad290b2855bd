// Snapshots of one channel, from the channelizer's transforms.
//
// spectrum: [element][segment][channel], channel fastest
// snapshots: column-major elements x segments, scaled so that a channel's amplitude is that of its signal
__kernel void select_channel(__global const float2 *spectrum, __global float2 *snapshots, uint elements, uint segments,
                             uint channels, uint channel, float scale) {
    const size_t element = get_global_id(0);
    const size_t segment = get_global_id(1);
    const size_t from = (element * segments + segment) * channels + channel;
    snapshots[element + segment * elements] = spectrum[from] * scale;
}
