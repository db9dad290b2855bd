//! The kernels and the steps by which the nvidia platform makes Cholesky factors and inverses, on the platform under
//! test: what it adds itself is cuBLAS' call for a product.

mod common;
#[path = "../../hip-cuda/src/solver/blocked/steps.rs"]
mod steps;

use std::ffi::c_int;

use common::{C64, Number, Setup, numbers, setup};
use hip::{DeviceBuffer, Function, LaunchConfig};
use num_complex::Complex;
use rocblas_sys::{rocblas_operation as Operation, rocblas_status as Status};
use steps::{Grid, Place, Product, Room, Step, TILE};

const SOURCE: &str = include_str!("../../hip-cuda/kernels/cholesky.hip");

/// What the kernels and products of one element type are called.
trait Element: Number {
    const NUMBER: &'static str;
    const PARTS: usize;

    /// # Safety
    /// As `rocblas_?gemm_strided_batched`.
    #[expect(clippy::too_many_arguments, reason = "a C function")]
    unsafe fn gemm(
        handle: rocblas_sys::rocblas_handle,
        turned: [Operation; 2],
        sizes: [c_int; 3],
        alpha: Self,
        a: (*const Self, c_int, i64),
        b: (*const Self, c_int, i64),
        beta: Self,
        c: (*mut Self, c_int, i64),
        count: c_int,
    ) -> Status;
}

macro_rules! element {
    ($($ty:ty, $number:literal, $parts:literal, $function:ident;)*) => {$(
        impl Element for $ty {
            const NUMBER: &'static str = $number;
            const PARTS: usize = $parts;

            unsafe fn gemm(
                handle: rocblas_sys::rocblas_handle,
                turned: [Operation; 2],
                sizes: [c_int; 3],
                alpha: Self,
                a: (*const Self, c_int, i64),
                b: (*const Self, c_int, i64),
                beta: Self,
                c: (*mut Self, c_int, i64),
                count: c_int,
            ) -> Status {
                let function = common::rocblas_api().$function.expect(stringify!($function));
                // SAFETY: the caller's promise; rocBLAS' numbers are laid out as these.
                unsafe {
                    function(
                        handle, turned[0], turned[1], sizes[0], sizes[1], sizes[2], (&raw const alpha).cast(), a.0.cast(), a.1, a.2,
                        b.0.cast(), b.1, b.2, (&raw const beta).cast(), c.0.cast(), c.1, c.2, count,
                    )
                }
            }
        }
    )*};
}
element! {
    f32, "float", 1, rocblas_sgemm_strided_batched;
    f64, "double", 1, rocblas_dgemm_strided_batched;
    Complex<f32>, "float", 2, rocblas_cgemm_strided_batched;
    C64, "double", 2, rocblas_zgemm_strided_batched;
}

struct Kernels {
    pack: Function,
    unpack: Function,
    factor_tile: Function,
    invert_tiles: Function,
    first_zeros: Function,
}

impl Kernels {
    fn of<T: Element>(setup: &Setup) -> Self {
        let module = hip::rtc::Program::new(SOURCE)
            .name("cholesky.hip")
            .option(&format!("-DNUMBER={}", T::NUMBER))
            .option(&format!("-DPARTS={}", T::PARTS))
            .compile(&setup.device)
            .unwrap();
        let function = |name| module.function(name).unwrap();
        Self {
            pack: function("pack"),
            unpack: function("unpack"),
            factor_tile: function("factor_tile"),
            invert_tiles: function("invert_tiles"),
            first_zeros: function("first_zeros"),
        }
    }
}

/// A batch in the caller's memory.
#[derive(Clone, Copy, Debug)]
struct Shape {
    n: usize,
    ld: usize,
    gap: usize,
    count: usize,
    upper: bool,
    listed: bool,
}

impl Shape {
    fn stride(&self) -> usize {
        self.ld * self.n + self.gap
    }

    fn inside(&self, i: usize, j: usize) -> bool {
        if self.upper { i <= j } else { i >= j }
    }
}

struct Run<'a, T> {
    setup: &'a Setup,
    kernels: Kernels,
    shape: Shape,
    grid: Grid,
    data: DeviceBuffer<T>,
    list: DeviceBuffer<i64>,
    info: DeviceBuffer<c_int>,
    rooms: [DeviceBuffer<T>; 3],
}

impl<'a, T: Element> Run<'a, T> {
    fn new(setup: &'a Setup, shape: Shape, data: &[T]) -> Self {
        let grid = Grid {
            tiles: shape.n.div_ceil(TILE),
            batch: shape.count,
        };
        // what a step must not rely on is not a number
        let nan = vec![T::of(C64::new(f64::NAN, f64::NAN)); grid.elements() * grid.batch];
        let data = setup.upload(data);
        let first = address(setup, &data);
        let list: Vec<i64> = (0..shape.count)
            .map(|i| first + (i * shape.stride() * size_of::<T>()) as i64)
            .collect();
        let upload = |values: &[T]| setup.upload(values);
        Self {
            setup,
            kernels: Kernels::of::<T>(setup),
            shape,
            grid,
            list: setup.device.alloc_from(&setup.stream, &list).unwrap(),
            info: setup.device.alloc_from(&setup.stream, &vec![0; shape.count]).unwrap(),
            rooms: [upload(&nan), upload(&nan), upload(&nan[..TILE * TILE * grid.batch])],
            data,
        }
    }

    fn launch(&self, function: &Function, grid: (u32, u32, u32), args: &[&dyn hip::KernelArg]) {
        let config = LaunchConfig {
            grid,
            block: (TILE as u32, 8, 1),
            shared_bytes: 0,
        };
        // SAFETY: the arguments are the kernel's, and the memory is as large as the shape and the grid say.
        unsafe { function.launch(&self.setup.stream, config, args) }.unwrap();
    }

    fn room(&self, room: Room) -> i64 {
        let [packed, result, tile] = &self.rooms;
        address(
            self.setup,
            match room {
                Room::Packed => packed,
                Room::Result => result,
                Room::Tile => tile,
            },
        )
    }

    fn matrices(&self) -> (i64, i64, i64, c_int, c_int, c_int) {
        let Shape { n, ld, .. } = self.shape;
        let rest = (n as c_int, ld as c_int, c_int::from(self.shape.upper));
        let list = address(self.setup, &self.list);
        let (first, list) = match self.shape.listed {
            true => (0, list),
            false => (address(self.setup, &self.data), 0),
        };
        let stride = self.shape.stride() as i64;
        (first, stride, list, rest.0, rest.1, rest.2)
    }

    fn all(&self) -> (u32, u32, u32) {
        let tiles = self.grid.tiles as u32;
        (tiles, tiles, self.grid.batch as u32)
    }

    fn pack(&self) {
        let (first, stride, list, n, ld, upper) = self.matrices();
        let packed = self.room(Room::Packed);
        self.launch(
            &self.kernels.pack,
            self.all(),
            &[&first, &stride, &list, &n, &ld, &upper, &packed],
        );
    }

    fn unpack(&self, whole: bool) {
        let (first, stride, list, n, ld, upper) = self.matrices();
        let (from, info) = (self.room(Room::Result), address(self.setup, &self.info));
        let whole = c_int::from(whole);
        self.launch(
            &self.kernels.unpack,
            self.all(),
            &[&from, &info, &whole, &first, &stride, &list, &n, &ld, &upper],
        );
    }

    fn multiply(&self, product: Product) {
        let at = |place: Place| {
            let bytes = (place.offset * size_of::<T>()) as i64;
            let at = self.room(place.room) + bytes;
            (
                std::ptr::with_exposed_provenance_mut::<T>(at as usize),
                place.ld as c_int,
                place.stride as i64,
            )
        };
        let turned = |turned| match turned {
            true => Operation::rocblas_operation_conjugate_transpose,
            false => Operation::rocblas_operation_none,
        };
        let [a, b] = [product.a, product.b].map(at);
        let a = (a.0.cast_const(), a.1, a.2);
        let b = (b.0.cast_const(), b.1, b.2);
        let sign = if product.negative { -1.0 } else { 1.0 };
        let added = f64::from(u8::from(product.added));
        // SAFETY: the places lie within the rooms, which is what the results say.
        let status = unsafe {
            <T as Element>::gemm(
                self.setup.blas.raw(),
                [turned(product.turned.0), turned(product.turned.1)],
                [product.m, product.n, product.k].map(|size| size as c_int),
                T::of(C64::new(sign, 0.0)),
                a,
                b,
                T::of(C64::new(added, 0.0)),
                at(product.c),
                product.count as c_int,
            )
        };
        assert_eq!(status, Status::rocblas_status_success, "{product:?}");
    }

    fn factor(&self) {
        self.pack();
        let batch = (self.grid.batch as u32, 1, 1);
        let [packed, result, tile] = [Room::Packed, Room::Result, Room::Tile].map(|r| self.room(r));
        let info = address(self.setup, &self.info);
        let tiles = self.grid.tiles as c_int;
        for step in self.grid.factor() {
            match step {
                Step::FactorTile(which) => {
                    let which = which as c_int;
                    let args: [&dyn hip::KernelArg; 6] = [&packed, &result, &tile, &info, &tiles, &which];
                    self.launch(&self.kernels.factor_tile, batch, &args);
                }
                Step::Multiply(product) => self.multiply(product),
            }
        }
        self.unpack(false);
    }

    fn invert(&self) {
        self.pack();
        let packed = self.room(Room::Packed);
        let info = address(self.setup, &self.info);
        let (n, tiles) = (self.shape.n as c_int, self.grid.tiles as c_int);
        let batch = self.grid.batch as u32;
        let args: [&dyn hip::KernelArg; 4] = [&packed, &info, &n, &tiles];
        self.launch(&self.kernels.first_zeros, (batch, 1, 1), &args);
        let grid = (self.grid.tiles as u32, batch, 1);
        self.launch(&self.kernels.invert_tiles, grid, &[&packed]);
        for product in self.grid.inverse() {
            self.multiply(product);
        }
        self.unpack(true);
    }

    fn found(&self) -> (Vec<T>, Vec<c_int>) {
        let mut info = vec![0; self.shape.count];
        self.info.copy_to_slice(&self.setup.stream, &mut info).unwrap();
        (self.setup.download(&self.data), info)
    }
}

fn address<T>(setup: &Setup, buffer: &DeviceBuffer<T>) -> i64 {
    buffer.on(&setup.stream).unwrap().as_ptr().expose_provenance() as i64
}

/// Positive definite matrices in one triangle each; all else, the imaginary parts of the diagonal too, is a pattern.
fn positive<T: Element>(shape: Shape) -> (Vec<T>, impl Fn(usize, usize, usize) -> C64) {
    let b = numbers::<T>(shape.n * shape.n * shape.count, 7);
    let n = shape.n;
    let whole = move |matrix: usize, i: usize, j: usize| {
        let (low, high) = (i.min(j), i.max(j));
        let entry = b[matrix * n * n + high + low * n].wide();
        match i.cmp(&j) {
            std::cmp::Ordering::Equal => C64::new(n as f64 + entry.re, 0.0),
            std::cmp::Ordering::Less => entry.conj(),
            std::cmp::Ordering::Greater => entry,
        }
    };
    let pattern = |index: usize| T::of(C64::new(1000.0 + index as f64, -2000.0 - index as f64));
    let mut all: Vec<T> = (0..shape.stride() * shape.count).map(pattern).collect();
    for matrix in 0..shape.count {
        for (i, j) in pairs(n).filter(|&(i, j)| shape.inside(i, j)) {
            let mut entry = whole(matrix, i, j);
            if i == j {
                entry.im = 3.0;
            }
            all[matrix * shape.stride() + i + j * shape.ld] = T::of(entry);
        }
    }
    (all, whole)
}

fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |j| (0..n).map(move |i| (i, j)))
}

/// What a routine must not write is as it was, to the bit.
fn only_the_triangle<T: Element>(shape: Shape, before: &[T], after: &[T]) {
    for (index, (before, after)) in before.iter().zip(after).enumerate() {
        let at = index % shape.stride();
        let (i, j) = (at % shape.ld, at / shape.ld);
        let named = j < shape.n && i < shape.n && shape.inside(i, j);
        assert!(named || before == after, "{shape:?}: element {index} was changed");
    }
}

fn factor_and_inverse_are_right<T: Element>(setup: &Setup, shape: Shape) {
    let n = shape.n;
    let (all, whole) = positive::<T>(shape);
    let run = Run::new(setup, shape, &all);
    run.factor();
    let (factors, info) = run.found();
    assert_eq!(info, vec![0; shape.count], "{shape:?}");
    only_the_triangle(shape, &all, &factors);
    let entry = |found: &[T], matrix: usize, i: usize, j: usize| {
        let at = |i: usize, j: usize| found[matrix * shape.stride() + i + j * shape.ld].wide();
        if shape.inside(i, j) { at(i, j) } else { at(j, i).conj() }
    };
    let bound = 100.0 * n as f64 * T::EPSILON;
    // Some columns of a large matrix do.
    let some = |n: usize| (0..n).step_by(n / 40 + 1);
    for matrix in 0..shape.count {
        for j in some(n) {
            for i in 0..=j {
                // the factor as a lower triangle
                let l = |i, k| match shape.upper {
                    true => entry(&factors, matrix, k, i).conj(),
                    false => entry(&factors, matrix, i, k),
                };
                let product: C64 = (0..=i).map(|k| l(i, k) * l(j, k).conj()).sum();
                let off = (product - whole(matrix, i, j)).norm();
                assert!(
                    off < bound * n as f64,
                    "{shape:?}: ({i}, {j}) of {matrix} is off by {off}"
                );
            }
            assert_eq!(entry(&factors, matrix, j, j).im, 0.0);
        }
    }

    run.invert();
    let (inverses, info) = run.found();
    assert_eq!(info, vec![0; shape.count], "{shape:?}");
    only_the_triangle(shape, &all, &inverses);
    for matrix in 0..shape.count {
        for j in some(n) {
            assert_eq!(entry(&inverses, matrix, j, j).im, 0.0);
            for i in 0..n {
                let product: C64 = (0..n)
                    .map(|k| whole(matrix, i, k) * entry(&inverses, matrix, k, j))
                    .sum();
                let off = (product - C64::new(f64::from(i == j), 0.0)).norm();
                assert!(off < bound, "{shape:?}: ({i}, {j}) of {matrix} is off by {off}");
            }
        }
    }
}

fn shapes() -> impl Iterator<Item = Shape> {
    let sizes = [
        (1, 0, 2),
        (2, 3, 1),
        (32, 0, 3),
        (33, 1, 2),
        (70, 0, 7),
        (135, 2, 1),
        (230, 0, 2),
    ];
    sizes.into_iter().enumerate().flat_map(|(index, (n, pad, count))| {
        [false, true].map(|upper| Shape {
            n,
            ld: n + pad,
            gap: 5 * (index % 2),
            count,
            upper,
            listed: index % 3 == 1,
        })
    })
}

#[test]
fn every_element_type_has_its_factors_and_inverses() {
    let setup = setup();
    for shape in shapes() {
        factor_and_inverse_are_right::<f32>(&setup, shape);
        factor_and_inverse_are_right::<f64>(&setup, shape);
        factor_and_inverse_are_right::<Complex<f32>>(&setup, shape);
        factor_and_inverse_are_right::<C64>(&setup, shape);
    }
}

#[test]
fn a_factor_that_stops_names_its_minor_and_keeps_what_lies_behind() {
    let setup = setup();
    for upper in [false, true] {
        for bad in [0, 31, 32, 40, 69] {
            let shape = Shape {
                n: 70,
                ld: 71,
                gap: 0,
                count: 3,
                upper,
                listed: false,
            };
            let (mut all, _) = positive::<Complex<f32>>(shape);
            let good = all.clone();
            let at = |matrix: usize, i: usize| matrix * shape.stride() + i * (shape.ld + 1);
            all[at(1, bad)] = Complex::new(-1e4, 0.0);
            all[at(1, 69)] = if bad == 69 {
                all[at(1, 69)]
            } else {
                Complex::new(f32::NAN, 0.0)
            };
            let (run, reference) = (Run::new(&setup, shape, &all), Run::new(&setup, shape, &good));
            run.factor();
            reference.factor();
            let ((found, info), (right, _)) = (run.found(), reference.found());
            assert_eq!(info, [0, bad as c_int + 1, 0]);
            for matrix in 0..3 {
                for (i, j) in pairs(shape.n).filter(|&(i, j)| shape.inside(i, j)) {
                    let index = matrix * shape.stride() + i + j * shape.ld;
                    let behind = matrix == 1 && i.min(j) >= bad;
                    let wanted = if behind { all[index] } else { right[index] };
                    let same = found[index].re.to_bits() == wanted.re.to_bits()
                        && found[index].im.to_bits() == wanted.im.to_bits();
                    // below the changed diagonal a column is the same only if nothing changed is in it
                    assert!(
                        same || (matrix == 1 && i.max(j) >= bad && !behind && found[index] == right[index]),
                        "({i}, {j}) of {matrix}, minor {bad}: {} is not {wanted}",
                        found[index]
                    );
                }
            }
        }
    }
}

#[test]
fn a_factor_with_a_zero_on_its_diagonal_is_named_and_not_written() {
    let setup = setup();
    let shape = Shape {
        n: 70,
        ld: 70,
        gap: 0,
        count: 3,
        upper: false,
        listed: false,
    };
    for (zeros, first) in [(vec![0], 1), (vec![69, 40], 41), (vec![33], 34)] {
        let mut all = vec![0.5_f64; shape.stride() * 3];
        for (matrix, i) in (0..3).flat_map(|matrix| (0..70).map(move |i| (matrix, i))) {
            all[matrix * shape.stride() + i * 71] = 40.0;
        }
        for zero in zeros {
            all[shape.stride() + zero * 71] = -0.0;
        }
        let run = Run::new(&setup, shape, &all);
        run.invert();
        let (found, info) = run.found();
        assert_eq!(info, [0, first, 0]);
        let singular = shape.stride()..2 * shape.stride();
        assert_eq!(found[singular.clone()], all[singular]);
        assert!(found.iter().all(|x| x.is_finite()) && found[0] != 40.0);
        assert_eq!(found[..70], found[2 * shape.stride()..][..70]);
    }
}
