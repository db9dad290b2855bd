// Draws a curve into one colour channel of a picture. `naga draw.wgsl draw.spv` makes the binary.

const WIDTH: u32 = 1024u;
const HEIGHT: u32 = 512u;

// The curve's height from -1 to 1 at each column's left edge and at the last one's right edge; then the channel.
@group(0) @binding(0) var<storage, read> curve: array<f32>;
// From the top left, a byte per channel, red first.
@group(0) @binding(1) var<storage, read_write> pixels: array<u32>;

fn row(height: f32) -> f32 {
    return (0.5 - 0.45 * height) * f32(HEIGHT);
}

@compute @workgroup_size(64)
fn draw(@builtin(global_invocation_id) id: vec3<u32>) {
    let place = id.x;
    if place >= WIDTH * HEIGHT {
        return;
    }
    let column = place % WIDTH;
    let middle = f32(place / WIDTH) + 0.5;
    let left = row(curve[column]);
    let right = row(curve[column + 1u]);
    if middle > min(left, right) - 2.0 && middle < max(left, right) + 2.0 {
        pixels[place] = pixels[place] | (255u << (8u * u32(curve[WIDTH + 1u])));
    }
}
