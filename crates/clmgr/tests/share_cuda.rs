//! Memory and semaphores shared with CUDA by file descriptor, on a machine with NVIDIA's driver.
//!
//! No processor's OpenCL can import anything, so that this is where imports are tried for good.
//! Without `libcuda.so.1`, or on an OpenCL device that is not CUDA's, the tests count as skipped.

mod common;
#[path = "share_cuda/cuda.rs"]
mod cuda;

use clmgr::{
    Arg, BufferAccess, Context, Device, Error, HandleKind, ImportedBuffer, Kernel, Manager, NdRange, Program,
    Semaphore, SemaphoreKind,
};
use cuda::Cuda;

const SOURCE: &str = "kernel void add(global uint *x, uint value) { x[get_global_id(0)] += value; }";

const LEN: usize = 1 << 20;

/// CUDA's first device and the OpenCL device that it is.
fn pair() -> Option<(Cuda, Device)> {
    let cuda = match Cuda::open() {
        Ok(cuda) => cuda,
        Err(reason) => {
            common::skipped(&format!("no CUDA: {reason}"));
            return None;
        }
    };
    let manager = Manager::load().unwrap_or_else(|error| panic!("{error}"));
    let same = |device: &Device| device.uuid() == Some(cuda.uuid());
    let Some(device) = manager.devices().into_iter().find(same) else {
        common::skipped("no OpenCL device is CUDA's first one");
        return None;
    };
    Some((cuda, device))
}

/// As [`pair`], if the device imports memory.
fn importing() -> Option<(Cuda, Context, Kernel)> {
    let (cuda, device) = pair()?;
    if !device.memory_import_kinds().contains(&HandleKind::OPAQUE_FD) {
        common::skipped("the device imports no memory by opaque descriptor");
        return None;
    }
    let context = Context::new(&device).unwrap();
    let program = Program::build(&context, SOURCE, "").unwrap();
    Some((cuda, context, program.kernel("add").unwrap()))
}

fn counting(len: usize) -> Vec<u32> {
    (0..len as u32).collect()
}

#[test]
fn imported_memory_is_the_memory_that_was_exported() {
    let Some((cuda, context, add)) = importing() else {
        return;
    };
    let queue = context.queue().unwrap();
    let memory = cuda.exportable(LEN * 4).unwrap();
    memory.write(&counting(LEN)).unwrap();
    let fd = memory.export().unwrap();
    let access = BufferAccess::default();
    // SAFETY: the descriptor was just exported for that many bytes.
    let mut imported =
        unsafe { ImportedBuffer::<u32>::import(&context, HandleKind::OPAQUE_FD, fd, LEN, access) }.unwrap();
    assert_eq!((imported.len(), imported.kind()), (LEN, HandleKind::OPAQUE_FD));

    let acquired = imported.acquire(&queue).unwrap();
    let args = [acquired.arg(), Arg::scalar(&5u32)];
    // SAFETY: the memory holds the range, and CUDA does not use it meanwhile.
    unsafe { add.launch(&queue, NdRange::d1(LEN), &args) }.unwrap();
    let mut seen = vec![0u32; LEN];
    acquired.read(&queue, &mut seen).unwrap();
    assert!(seen.iter().zip(0u32..).all(|(&x, i)| x == i + 5));
    acquired.release().unwrap().wait().unwrap();

    let back = memory.read(LEN).unwrap();
    assert!(back.iter().zip(0u32..).all(|(&x, i)| x == i + 5));

    // Once more after CUDA wrote, through a guard whose drop hands the memory back.
    memory.write(&vec![1; LEN]).unwrap();
    let mut acquired = imported.acquire(&queue).unwrap();
    acquired.write(&queue, &vec![9; LEN]).unwrap();
    drop(acquired);
    queue.finish().unwrap();
    assert!(memory.read(LEN).unwrap().iter().all(|&x| x == 9));

    // The import holds the memory: CUDA's own hold may end first.
    drop(memory);
    let acquired = imported.acquire(&queue).unwrap();
    acquired.read(&queue, &mut seen).unwrap();
    assert!(seen.iter().all(|&x| x == 9));
}

#[test]
fn a_leaked_guard_is_handed_back_by_the_next_one() {
    let Some((cuda, context, _)) = importing() else {
        return;
    };
    let queue = context.queue().unwrap();
    let memory = cuda.exportable(LEN * 4).unwrap();
    let devices = [context.device().clone()];
    let (fd, access) = (memory.export().unwrap(), BufferAccess::default());
    // SAFETY: the descriptor was just exported for that many bytes.
    let mut imported =
        unsafe { ImportedBuffer::<u32>::import_for(&context, &devices, HandleKind::OPAQUE_FD, fd, LEN, access) }
            .unwrap();
    let mut acquired = imported.acquire(&queue).unwrap();
    acquired.write(&queue, &vec![3; LEN]).unwrap();
    std::mem::forget(acquired);
    imported.acquire(&queue).unwrap().release().unwrap().wait().unwrap();
    assert!(memory.read(LEN).unwrap().iter().all(|&x| x == 3));
}

#[test]
fn imports_that_cannot_be_are_errors() {
    let Some((cuda, context, _)) = importing() else {
        return;
    };
    let memory = cuda.exportable(LEN * 4).unwrap();
    let access = BufferAccess::default();
    let none: &[Device] = &[];
    // SAFETY: nothing is imported.
    let refused = unsafe {
        let fd = memory.export().unwrap();
        ImportedBuffer::<u32>::import_for(&context, none, HandleKind::OPAQUE_FD, fd, LEN, access)
    };
    assert!(matches!(refused, Err(Error::Zero { .. })));
    let no_memory = std::fs::File::open("/dev/null").unwrap().into();
    // SAFETY: the driver finds no memory behind the descriptor.
    let refused = unsafe { ImportedBuffer::<u32>::import(&context, HandleKind::OPAQUE_FD, no_memory, LEN, access) };
    assert!(refused.is_err());
}

#[test]
fn cuda_waits_for_a_semaphore_that_opencl_signals() {
    let Some((cuda, context, add)) = importing() else {
        return;
    };
    let kind = SemaphoreKind::OPAQUE_FD;
    if !context.device().semaphore_export_kinds().contains(&kind) {
        common::skipped("the device exports no semaphore by opaque descriptor");
        return;
    }
    let queue = context.queue().unwrap();
    let memory = cuda.exportable(LEN * 4).unwrap();
    memory.write(&vec![0; LEN]).unwrap();
    let (fd, access) = (memory.export().unwrap(), BufferAccess::default());
    // SAFETY: the descriptor was just exported for that many bytes.
    let mut imported =
        unsafe { ImportedBuffer::<u32>::import(&context, HandleKind::OPAQUE_FD, fd, LEN, access) }.unwrap();
    let ours = Semaphore::exportable(&context, kind).unwrap();
    let theirs = cuda.import_semaphore(ours.export(kind).unwrap()).unwrap();
    for round in 1..=20u32 {
        let acquired = imported.acquire(&queue).unwrap();
        let args = [acquired.arg(), Arg::scalar(&1u32)];
        // SAFETY: the memory holds the range, and CUDA reads it after the signal alone.
        unsafe { add.launch(&queue, NdRange::d1(LEN), &args) }.unwrap();
        drop(acquired);
        ours.signal(&queue).unwrap();
        queue.flush().unwrap();
        // The host does not wait for OpenCL here: the semaphore alone orders the copy.
        let seen = cuda.read_after(&theirs, &memory, LEN).unwrap();
        assert!(seen.iter().all(|&x| x == round), "round {round}");
    }
}
