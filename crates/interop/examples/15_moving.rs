//! What a C++ program did with ManagerOpenCL, in Rust: the snippets of the book's part "Moving from ManagerOpenCL".
//!
//! `cargo run -p hipcl-interop --example 15_moving`

use std::error::Error;

use clmgr::opencl_sys::{CL_MEM_READ_WRITE, CL_SUCCESS, cl_mem};
use clmgr::{Arg, C32, NdRange};
use interop::{Bridge, Options, Shared};
use rocblas::solver::{Mirror, hermitian_inverse};
use rocblas::{Fill, Handle, Matrix, Op};

const COUNT: usize = 1 << 16;
const SOURCE: &str = "kernel void add(global float2 *x, float by) { x[get_global_id(0)].x += by; }";

fn main() -> Result<(), Box<dyn Error>> {
    // ANCHOR: start
    let bridge = Bridge::open(&platform::select()?, &Options::default())?;
    // ANCHOR_END: start
    buffers(&bridge)?;
    products(&bridge)?;
    external(&bridge)?;
    assert_eq!(bridge.meter().snapshot().data_set, 0);
    copies(&bridge)?;
    println!("all snippets are right");
    Ok(())
}

fn buffers(bridge: &Bridge) -> Result<(), Box<dyn Error>> {
    let samples = vec![C32::new(1.0, 2.0); COUNT];
    // ANCHOR: buffers
    let mut buffer = bridge.alloc::<C32>(samples.len())?;
    buffer.upload(&samples)?;
    let mut first = [C32::default(); 16];
    buffer.download_at(0, &mut first)?;
    // ANCHOR_END: buffers
    assert_eq!(first, samples[..16]);

    // ANCHOR: kernels
    let queue = bridge.queue()?;
    let add = bridge.programs().get(SOURCE, "")?.kernel("add")?;
    {
        let x = buffer.cl_mut(&queue)?;
        // SAFETY: the kernel takes these two, and touches COUNT numbers of the buffer.
        unsafe { add.launch(&queue, NdRange::d1(COUNT), &[x.arg(), Arg::scalar(&0.5f32)])? };
    }
    // ANCHOR_END: kernels

    let mut back = vec![C32::default(); COUNT];
    // ANCHOR: transfers
    // SAFETY: `samples` and `back` stay, and nothing else uses them, until the events have ended.
    let written = unsafe { buffer.upload_async(&queue, 0, samples.as_ptr(), 8)? };
    // SAFETY: as above.
    let read = unsafe { buffer.download_async(&queue, 0, back.as_mut_ptr(), COUNT)? };
    written.wait()?;
    read.wait()?;
    // ANCHOR_END: transfers
    assert_eq!(back[7], C32::new(1.0, 2.0));
    assert_eq!(back[8], C32::new(1.5, 2.0));
    Ok(())
}

fn products(bridge: &Bridge) -> Result<(), Box<dyn Error>> {
    const N: usize = 16;
    let mut data = vec![C32::default(); N * N];
    data.iter_mut().step_by(N + 1).for_each(|x| *x = C32::new(2.0, 0.0));
    let mut x = bridge.alloc::<C32>(N * N)?;
    let mut r = bridge.alloc::<C32>(N * N)?;
    x.upload(&data)?;
    let one = C32::new(1.0, 0.0);
    // ANCHOR: products
    let stream = bridge.stream()?;
    let blas = Handle::new(&bridge.blas()?, &stream)?;
    let samples = Matrix::new(&x, N, N, N);
    let product = Matrix::new(&mut r, N, N, N);
    blas.gemm(
        Op::ConjTranspose,
        Op::None,
        one,
        samples,
        samples,
        C32::default(),
        product,
    )?;
    let mirror = Mirror::new(bridge.hip_device())?; // once for all inverses
    hermitian_inverse(&blas, &mirror, Fill::Lower, Matrix::new(&mut r, N, N, N))?.check()?;
    // ANCHOR_END: products
    r.download(&mut data)?;
    assert!((data[0] - C32::new(0.25, 0.0)).norm() < 1e-6 && data[1].norm() < 1e-6);
    Ok(())
}

/// A buffer of another library in the bridge's context.
fn theirs(bridge: &Bridge) -> Result<cl_mem, Box<dyn Error>> {
    let create = bridge.cl_device().api().clCreateBuffer.ok_or("no clCreateBuffer")?;
    let mut code = 0;
    let (context, bytes) = (bridge.native_handles().context, COUNT * size_of::<C32>());
    // SAFETY: a living context, no host memory, a place for the code.
    let buffer = unsafe { create(context, CL_MEM_READ_WRITE, bytes, std::ptr::null_mut(), &mut code) };
    if code == CL_SUCCESS {
        Ok(buffer)
    } else {
        Err(format!("clCreateBuffer failed: {code}").into())
    }
}

fn external(bridge: &Bridge) -> Result<(), Box<dyn Error>> {
    let theirs = theirs(bridge)?;
    // ANCHOR: external
    // SAFETY: a living cl_mem, which its owner does not use while a guard is alive.
    let adopted: Shared<C32> = unsafe { bridge.adopt_cl_mem(theirs, None)? };
    // adopted.len() is its length, adopted.residency() where it lies
    // ANCHOR_END: external
    assert_eq!((adopted.len(), adopted.is_copy()), (COUNT, false));
    drop(adopted);
    let release = bridge
        .cl_device()
        .api()
        .clReleaseMemObject
        .ok_or("no clReleaseMemObject")?;
    // SAFETY: the last use of the owner's own reference.
    assert_eq!(unsafe { release(theirs) }, CL_SUCCESS);
    Ok(())
}

fn copies(bridge: &Bridge) -> Result<(), Box<dyn Error>> {
    let mut from = bridge.alloc::<C32>(COUNT)?;
    let mut to = bridge.alloc::<C32>(COUNT)?;
    from.upload(&vec![C32::new(5.0, 0.0); COUNT])?;
    let queue = bridge.queue()?;
    // ANCHOR: copies
    to.copy_from(&queue, 0, &from, 0..COUNT)?.wait()?;
    // ANCHOR_END: copies
    let mut found = vec![C32::default(); COUNT];
    to.download(&mut found)?;
    assert!(found.iter().all(|x| *x == C32::new(5.0, 0.0)));
    Ok(())
}
