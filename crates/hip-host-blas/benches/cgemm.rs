//! `rocblas_cgemm` of the host platform next to OpenBLAS' `cblas_cgemm`, on the same data and cores
//! and in turns, so that what else the machine does hits both.
//!
//! OpenBLAS is looked for at run time: the file that `OPENBLAS` names, else `libopenblas.so.0` on
//! the loader's path. Versions before 0.3.22 do not know recent processors and choose kernels
//! without AVX-512 on them; where the processor has it and `OPENBLAS_CORETYPE` is not set, the
//! benchmark asks for `SkylakeX`. To compare on one core, run it under `taskset -c 0`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::hint::black_box;
use std::ptr::null_mut;
use std::time::Instant;

use hip_sys::{hipError_t, hipMemcpyKind};
use libloading::Library;
use num_complex::Complex;
use rocblas_sys::{rocblas_operation, rocblas_status};

type C32 = Complex<f32>;

const SIZE: usize = 1024;
const RUNS: usize = 31;

fn main() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let a: Vec<C32> = numbers(1);
    let b: Vec<C32> = numbers(2);
    let mut ours = Ours::new(&a, &b);
    println!("cgemm, {SIZE} x {SIZE} x {SIZE}, {threads} threads, median of {RUNS} runs");
    let theirs = OpenBlas::load(threads);
    let mut c = vec![C32::ZERO; SIZE * SIZE];
    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    // The first runs start threads and touch memory.
    for run in 0..RUNS + 3 {
        let start = Instant::now();
        ours.run();
        let ours = start.elapsed().as_secs_f64();
        let start = Instant::now();
        if let Ok(blas) = &theirs {
            blas.run(&a, &b, black_box(&mut c));
        }
        let theirs = start.elapsed().as_secs_f64();
        if run >= 3 {
            our_times.push(ours);
            their_times.push(theirs);
        }
    }
    let mut ratios: Vec<f64> = their_times
        .iter()
        .zip(&our_times)
        .map(|(theirs, ours)| theirs / ours)
        .collect();
    ratios.sort_by(f64::total_cmp);
    report("host platform", our_times);
    match theirs {
        Err(reason) => println!("no OpenBLAS to compare with: {reason}"),
        Ok(blas) => {
            report(&blas.name(), their_times);
            println!(
                "median of the ratios of neighbouring runs {:.2}; above 1 the host platform is faster",
                ratios[ratios.len() / 2]
            );
            let worst = ours
                .result()
                .iter()
                .zip(&c)
                .map(|(x, y)| (x - y).norm())
                .fold(0.0, f32::max);
            println!("largest difference of an element {worst:e}");
            assert!(worst < 1e-2, "the two disagree");
        }
    }
}

fn report(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    let flops = 8.0 * (SIZE * SIZE * SIZE) as f64;
    println!(
        "{:7.2} ms  {:6.1} GFLOP/s  (fastest {:6.1})  {name}",
        median * 1e3,
        flops / median / 1e9,
        flops / times[0] / 1e9,
    );
}

fn numbers(seed: u32) -> Vec<C32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..SIZE * SIZE).map(|_| C32::new(next(), next())).collect()
}

/// The host platform, with the matrices in its device memory.
struct Ours {
    hip: hip_sys::Api,
    blas: rocblas_sys::Api,
    handle: rocblas_sys::rocblas_handle,
    matrices: [*mut c_void; 3],
}

const BYTES: usize = SIZE * SIZE * size_of::<C32>();

impl Ours {
    fn new(a: &[C32], b: &[C32]) -> Self {
        let (hip, blas) = (hip_host::hip_api(), hip_host_blas::rocblas_api());
        let mut handle = null_mut();
        let mut matrices = [null_mut(); 3];
        // SAFETY: valid places for the results, and copies of as many bytes as were allocated.
        unsafe {
            let status = blas.rocblas_create_handle.unwrap()(&mut handle);
            assert_eq!(status, rocblas_status::rocblas_status_success);
            for matrix in &mut matrices {
                let error = hip.hipMalloc.unwrap()(matrix, BYTES);
                assert_eq!(error, hipError_t::hipSuccess);
            }
            for (to, from) in matrices.iter().zip([a, b]) {
                let kind = hipMemcpyKind::hipMemcpyHostToDevice;
                let error = hip.hipMemcpy.unwrap()(*to, from.as_ptr().cast(), BYTES, kind);
                assert_eq!(error, hipError_t::hipSuccess);
            }
        }
        Self {
            hip,
            blas,
            handle,
            matrices,
        }
    }

    fn run(&mut self) {
        let none = rocblas_operation::rocblas_operation_none;
        let n = SIZE as i32;
        let (alpha, beta) = (C32::ONE, C32::ZERO);
        let [a, b, c] = self.matrices;
        // SAFETY: matrices of this shape in device memory.
        unsafe {
            let status = self.blas.rocblas_cgemm.unwrap()(
                self.handle,
                none,
                none,
                n,
                n,
                n,
                (&raw const alpha).cast(),
                a.cast(),
                n,
                b.cast(),
                n,
                (&raw const beta).cast(),
                c.cast(),
                n,
            );
            assert_eq!(status, rocblas_status::rocblas_status_success);
            let error = self.hip.hipDeviceSynchronize.unwrap()();
            assert_eq!(error, hipError_t::hipSuccess);
        }
    }

    fn result(&self) -> Vec<C32> {
        let mut values = vec![C32::ZERO; SIZE * SIZE];
        let kind = hipMemcpyKind::hipMemcpyDeviceToHost;
        // SAFETY: as many bytes as were allocated.
        let error = unsafe { self.hip.hipMemcpy.unwrap()(values.as_mut_ptr().cast(), self.matrices[2], BYTES, kind) };
        assert_eq!(error, hipError_t::hipSuccess);
        values
    }
}

type CblasCgemm = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_int,
    *const c_void,
    c_int,
    *const c_void,
    *mut c_void,
    c_int,
);

/// Column-major, and no transposition, in CBLAS' numbers.
const COLUMNS: c_int = 102;
const NO_TRANS: c_int = 111;

struct OpenBlas {
    library: Library,
    cgemm: CblasCgemm,
}

impl OpenBlas {
    fn load(threads: usize) -> Result<Self, libloading::Error> {
        const CORE: &str = "OPENBLAS_CORETYPE";
        #[cfg(target_arch = "x86_64")]
        if std::env::var_os(CORE).is_none() && std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the host platform's threads read no environment while they wait for work.
            unsafe { std::env::set_var(CORE, "SkylakeX") };
        }
        let path = std::env::var_os("OPENBLAS").unwrap_or_else(|| "libopenblas.so.0".into());
        // SAFETY: a numeric library without surprising initialisers; the functions have the
        // signatures of OpenBLAS' cblas.h with 32-bit integers.
        unsafe {
            let library = Library::new(path)?;
            let set: unsafe extern "C" fn(c_int) = *library.get(b"openblas_set_num_threads\0")?;
            set(threads as c_int);
            let cgemm = *library.get(b"cblas_cgemm\0")?;
            Ok(Self { library, cgemm })
        }
    }

    fn name(&self) -> String {
        // SAFETY: OpenBLAS' own function, which returns a static string.
        let config = unsafe {
            self.library
                .get::<unsafe extern "C" fn() -> *const c_char>(b"openblas_get_config\0")
                .map(|get| CStr::from_ptr(get()).to_string_lossy().into_owned())
        };
        config.unwrap_or_else(|_| "OpenBLAS".into())
    }

    fn run(&self, a: &[C32], b: &[C32], c: &mut [C32]) {
        let n = SIZE as c_int;
        let (alpha, beta) = (C32::ONE, C32::ZERO);
        // SAFETY: matrices of this shape.
        unsafe {
            (self.cgemm)(
                COLUMNS,
                NO_TRANS,
                NO_TRANS,
                n,
                n,
                n,
                (&raw const alpha).cast(),
                a.as_ptr().cast(),
                n,
                b.as_ptr().cast(),
                n,
                (&raw const beta).cast(),
                c.as_mut_ptr().cast(),
                n,
            );
        }
    }
}
