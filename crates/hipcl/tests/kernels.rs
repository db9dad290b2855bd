//! The jobs' OpenCL kernels on small data of exactly their size, for devices that check each access,
//! as `cargo xtask oclgrind` has.

use std::f64::consts::TAU;

use clmgr::{Arg, C32, Context, Kernel, Manager, NdRange, Program, Queue, RegularBuffer};

type C64 = num_complex::Complex<f64>;

struct Rig {
    context: Context,
    queue: Queue,
}

impl Rig {
    fn open() -> Self {
        let manager = Manager::load().unwrap_or_else(|error| panic!("{error}"));
        let context = Context::new(&manager.devices()[0]).unwrap();
        Self {
            queue: context.queue().unwrap(),
            context,
        }
    }

    fn kernel(&self, source: &str, name: &str) -> Kernel {
        let program = Program::build(&self.context, source, "").unwrap();
        program.kernel(name).unwrap()
    }

    fn buffer<T: bytemuck::Pod>(&self, data: &[T]) -> RegularBuffer<T> {
        let mut buffer = RegularBuffer::new(&self.context, data.len()).unwrap();
        buffer.write(&self.queue, data).unwrap();
        buffer
    }

    fn read(&self, buffer: &RegularBuffer<C32>) -> Vec<C32> {
        let mut data = vec![C32::default(); buffer.len()];
        buffer.read(&self.queue, &mut data).unwrap();
        data
    }

    /// Launches a kernel and waits.
    fn run(&self, kernel: &Kernel, range: NdRange, args: &[Arg<'_>]) {
        // SAFETY: the tests give memory of the size that the kernel takes for the range.
        unsafe { kernel.launch(&self.queue, range, args) }
            .unwrap()
            .wait()
            .unwrap();
    }
}

fn numbers(len: usize) -> Vec<C32> {
    (0..len)
        .map(|i| C32::new((i % 17) as f32 - 8.0, (i % 5) as f32 - 2.0))
        .collect()
}

fn assert_close(got: &[C32], expected: &[C32]) {
    assert_eq!(got.len(), expected.len());
    for (index, (got, expected)) in got.iter().zip(expected).enumerate() {
        let off = (got - expected).norm();
        assert!(off < 1e-4, "{got} for {expected} at {index}");
    }
}

const NOTE: &str = include_str!("../kernels/note.cl");
const GPS: &str = include_str!("../kernels/gps.cl");
const CAPON: &str = include_str!("../kernels/capon.cl");
const RADAR: &str = include_str!("../kernels/radar.cl");

#[test]
fn notes_kernels_add_and_rotate_each_number() {
    let rig = Rig::open();
    let data = numbers(33);
    let x = rig.buffer(&data);
    let range = NdRange::d1(data.len());
    let added = [x.arg(), Arg::scalar(&1.5f32), Arg::scalar(&-2.0f32)];
    rig.run(&rig.kernel(NOTE, "add"), range, &added);
    let turned = [x.arg(), Arg::scalar(&0.6f32), Arg::scalar(&0.8f32)];
    rig.run(&rig.kernel(NOTE, "rotate_by"), range, &turned);
    let turn = |z: &C32| (z + C32::new(1.5, -2.0)) * C32::new(0.6, 0.8);
    let expected: Vec<C32> = data.iter().map(turn).collect();
    assert_close(&rig.read(&x), &expected);
}

#[test]
fn wiping_off_turns_every_sample_by_its_phase() {
    let rig = Rig::open();
    let samples = numbers(21);
    let cycles = [0.0, 0.125, 0.7, 0.999];
    // A step is in units of 2^-64 cycles.
    let steps = cycles.map(|cycles: f64| (cycles * 2f64.powi(64)) as u64);
    let (input, table) = (rig.buffer(&samples), rig.buffer(&steps));
    let out = rig.buffer(&vec![C32::default(); samples.len() * steps.len()]);
    let range = NdRange::d2(samples.len(), steps.len());
    let args = [input.arg(), table.arg(), out.arg()];
    rig.run(&rig.kernel(GPS, "wipe_off"), range, &args);
    let mut expected = Vec::new();
    for step in cycles {
        for (n, sample) in samples.iter().enumerate() {
            let phase = -TAU * (n as f64 * step).fract();
            expected.push(sample * C32::new(phase.cos() as f32, phase.sin() as f32));
        }
    }
    assert_close(&rig.read(&out), &expected);
}

#[test]
fn the_product_meets_every_row_with_every_code() {
    let rig = Rig::open();
    let (length, rows, codes) = (9, 3, 4);
    let (blocks, spectra) = (numbers(rows * length), numbers(codes * length + 1));
    let (blocks_in, codes_in) = (rig.buffer(&blocks), rig.buffer(&spectra[1..]));
    let out = rig.buffer(&vec![C32::default(); codes * rows * length]);
    let range = NdRange::d3(length, rows, codes);
    let scale = 0.25f32;
    let args = [blocks_in.arg(), codes_in.arg(), Arg::scalar(&scale), out.arg()];
    rig.run(&rig.kernel(GPS, "product"), range, &args);
    let mut expected = Vec::new();
    for code in 0..codes {
        for row in 0..rows {
            for k in 0..length {
                let conjugate = spectra[1 + code * length + k].conj();
                expected.push(blocks[row * length + k] * conjugate * scale);
            }
        }
    }
    assert_close(&rig.read(&out), &expected);
}

#[test]
fn a_channel_is_selected_from_every_element_and_segment() {
    let rig = Rig::open();
    let (elements, segments, channels, channel) = (3u32, 5u32, 4u32, 2u32);
    let spectrum = numbers((elements * segments * channels) as usize);
    let input = rig.buffer(&spectrum);
    let out = rig.buffer(&vec![C32::default(); (elements * segments) as usize]);
    let scale = 0.5f32;
    let args = [
        input.arg(),
        out.arg(),
        Arg::scalar(&elements),
        Arg::scalar(&segments),
        Arg::scalar(&channels),
        Arg::scalar(&channel),
        Arg::scalar(&scale),
    ];
    let range = NdRange::d2(elements as usize, segments as usize);
    rig.run(&rig.kernel(CAPON, "select_channel"), range, &args);
    let mut expected = Vec::new();
    for segment in 0..segments {
        for element in 0..elements {
            let from = (element * segments + segment) * channels + channel;
            expected.push(spectrum[from as usize] * scale);
        }
    }
    assert_close(&rig.read(&out), &expected);
}

#[test]
fn a_row_is_delayed_tapered_and_padded() {
    let rig = Rig::open();
    let (channels, count, padded, rows) = (2u32, 9u32, 16, 4);
    // the cubic that four samples determine is met exactly
    let cubic = |row: usize, t: f64| C64::new(0.1 * t.powi(3) - t, (row as f64 + 1.0) * t * t);
    let samples: Vec<C32> = (0..rows * count as usize)
        .map(|i| cubic(i / count as usize, (i % count as usize) as f64))
        .map(|x| C32::new(x.re as f32, x.im as f32))
        .collect();
    let taper: Vec<f32> = (0..count).map(|n| 0.5 + n as f32 / 16.0).collect();
    let (whole, fraction) = ([-1i32, 2], [0.25f32, 0.75]);
    let input = rig.buffer(&samples);
    let (taper_in, whole_in, fraction_in) = (rig.buffer(&taper), rig.buffer(&whole), rig.buffer(&fraction));
    let out = rig.buffer(&vec![C32::new(7.0, 7.0); rows * padded]);
    let args = [
        input.arg(),
        taper_in.arg(),
        whole_in.arg(),
        fraction_in.arg(),
        out.arg(),
        Arg::scalar(&channels),
        Arg::scalar(&count),
    ];
    rig.run(&rig.kernel(RADAR, "align"), NdRange::d2(padded, rows), &args);
    let got = rig.read(&out);
    for (row, got) in got.chunks(padded).enumerate() {
        let channel = row % channels as usize;
        for (n, got) in got.iter().enumerate() {
            let at = n as i32 + whole[channel];
            let inside = at >= 1 && at + 2 < count as i32 && n < count as usize;
            let expected = match n < count as usize {
                true if inside => {
                    let x = cubic(row, f64::from(at) + f64::from(fraction[channel])) * f64::from(taper[n]);
                    C32::new(x.re as f32, x.im as f32)
                }
                // near the ends a part of the cubic is missing: the values are checked by the reference of the job
                true => continue,
                false => C32::ZERO,
            };
            assert!(
                (got - expected).norm() < 1e-3,
                "{got} for {expected} at {n} of row {row}"
            );
        }
    }
}

#[test]
fn every_row_is_multiplied_by_the_filter() {
    let rig = Rig::open();
    let (padded, rows) = (8, 3);
    let (data, filter) = (numbers(padded * rows), numbers(padded + 2));
    let (spectrum, filter_in) = (rig.buffer(&data), rig.buffer(&filter[2..]));
    let args = [spectrum.arg(), filter_in.arg()];
    rig.run(&rig.kernel(RADAR, "compress"), NdRange::d2(padded, rows), &args);
    let expected: Vec<C32> = (0..data.len()).map(|i| data[i] * filter[2 + i % padded]).collect();
    assert_close(&rig.read(&spectrum), &expected);
}
