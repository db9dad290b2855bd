//! Memory and semaphores by file descriptor: refused by name where the device has none, and used
//! where it has.

mod common;

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use clmgr::{
    Arg, BufferAccess, Context, Device, Error, HandleKind, ImportedBuffer, NdRange, Program, RegularBuffer, Semaphore,
    SemaphoreKind,
};

fn descriptor() -> OwnedFd {
    File::open("/dev/null").unwrap().into()
}

/// The first extension of the list that the device lacks.
fn first_missing<'a>(device: &Device, needed: &[&'a str]) -> Option<&'a str> {
    needed.iter().copied().find(|name| !device.has_extension(name))
}

fn assert_names(error: &Error, extension: &str) {
    assert!(matches!(error, Error::NotSupported { .. }), "{error}");
    assert!(error.to_string().contains(&format!("`{extension}`")), "{error}");
}

fn import(context: &Context, kind: HandleKind) -> Result<ImportedBuffer<u32>, Error> {
    // SAFETY: a device without the extension refuses before it looks; one with it refuses what is
    // no memory, since the null device has none.
    unsafe { ImportedBuffer::import(context, kind, descriptor(), 16, BufferAccess::default()) }
}

#[test]
fn an_import_without_the_extension_names_it_and_closes_the_descriptor() {
    let context = common::context();
    for (kind, extension) in [
        (HandleKind::OPAQUE_FD, "cl_khr_external_memory_opaque_fd"),
        (HandleKind::DMA_BUF, "cl_khr_external_memory_dma_buf"),
    ] {
        let needed = ["cl_khr_external_memory", extension];
        let error = import(&context, kind).unwrap_err();
        if let Some(missing) = first_missing(context.device(), &needed) {
            assert_names(&error, missing);
        }
    }
    let unknown = import(&context, HandleKind(0x9999)).unwrap_err();
    assert!(matches!(unknown, Error::NotSupported { .. }), "{unknown}");
    // A pipe tells that its one writer is gone.
    let (mut reader, writer) = std::io::pipe().unwrap();
    // SAFETY: as in `import`.
    let refused = unsafe {
        let kind = HandleKind(0x9999);
        ImportedBuffer::<u32>::import(&context, kind, writer.into(), 16, BufferAccess::default())
    };
    assert!(refused.is_err());
    assert_eq!(reader.read(&mut [0]).unwrap(), 0, "the descriptor is still open");
}

#[test]
fn an_import_of_no_elements_is_refused() {
    let context = common::context();
    // SAFETY: nothing is imported.
    let refused = unsafe {
        ImportedBuffer::<u32>::import(
            &context,
            HandleKind::OPAQUE_FD,
            descriptor(),
            0,
            BufferAccess::default(),
        )
    };
    assert!(matches!(refused, Err(Error::Zero { .. })));
}

#[test]
fn semaphores_without_the_extension_are_refused_by_its_name() {
    let context = common::context();
    if let Some(missing) = first_missing(context.device(), &["cl_khr_semaphore"]) {
        assert_names(&Semaphore::new(&context).unwrap_err(), missing);
    }
    for (kind, extension) in [
        (SemaphoreKind::OPAQUE_FD, "cl_khr_external_semaphore_opaque_fd"),
        (SemaphoreKind::SYNC_FD, "cl_khr_external_semaphore_sync_fd"),
    ] {
        let needed = ["cl_khr_semaphore", "cl_khr_external_semaphore", extension];
        let Some(missing) = first_missing(context.device(), &needed) else {
            continue;
        };
        assert_names(&Semaphore::exportable(&context, kind).unwrap_err(), missing);
        // SAFETY: a device without the extension refuses before it looks.
        let import = unsafe { Semaphore::import(&context, kind, descriptor()) };
        assert_names(&import.unwrap_err(), missing);
    }
}

#[test]
fn a_semaphore_orders_two_queues() {
    const SOURCE: &str = "kernel void spin(global uint *x, uint rounds) {
        uint state = x[0];
        for (uint i = 0; i < rounds; ++i)
            state = state * 1664525u + 1013904223u + i;
        x[0] = state | 1u;
    }";
    const ROUNDS: u32 = 30_000_000;
    let context = common::context();
    if let Some(missing) = first_missing(context.device(), &["cl_khr_semaphore"]) {
        common::skipped(&format!("the device lacks {missing}"));
        return;
    }
    let (one, two) = (context.queue().unwrap(), context.queue().unwrap());
    let semaphore = Semaphore::new(&context).unwrap();
    assert!(matches!(semaphore.wait(&two), Err(Error::NotSignalled)));
    // The program lives to the end: NVIDIA's OpenCL waits for the kernel where it is released.
    let program = Program::build(&context, SOURCE, "").unwrap();
    let mut memory = RegularBuffer::<u32>::new(&context, 1).unwrap();
    memory.write(&one, &[0]).unwrap();
    let rounds = common::rounds(ROUNDS);
    let args = [memory.arg(), Arg::scalar(&rounds)];
    let spin = program.kernel("spin").unwrap();
    // SAFETY: the kernel touches the one element of `memory`, which nothing else uses meanwhile.
    let long = unsafe { spin.launch(&one, NdRange::d1(1), &args) }.unwrap();
    semaphore.signal(&one).unwrap();
    semaphore.wait(&two).unwrap();
    let behind = two.record().unwrap();
    two.flush().unwrap();
    assert!(!long.is_complete().unwrap(), "the kernel is too short to show an order");
    assert!(!behind.is_complete().unwrap());
    behind.wait().unwrap();
    assert!(long.is_complete().unwrap());
    assert!(matches!(semaphore.wait(&two), Err(Error::NotSignalled)));
}

#[test]
fn an_exported_semaphore_signals_across_contexts() {
    let here = common::context();
    let needed = [
        "cl_khr_semaphore",
        "cl_khr_external_semaphore",
        "cl_khr_external_semaphore_opaque_fd",
    ];
    if let Some(missing) = first_missing(here.device(), &needed) {
        common::skipped(&format!("the device lacks {missing}"));
        return;
    }
    let there = Context::new(here.device()).unwrap();
    let kind = SemaphoreKind::OPAQUE_FD;
    let ours = match Semaphore::exportable(&here, kind) {
        // CL_INVALID_PROPERTY: NVIDIA's OpenCL has the extension for imports alone.
        Err(Error::Call { code: -64, .. }) => {
            common::skipped("semaphores of that kind are imported only");
            return;
        }
        made => made.unwrap(),
    };
    let fd = ours.export(kind).unwrap();
    // SAFETY: the descriptor was just exported as this kind.
    let theirs = unsafe { Semaphore::import(&there, kind, fd) }.unwrap();
    let (from, to) = (here.queue().unwrap(), there.queue().unwrap());
    ours.signal(&from).unwrap();
    from.flush().unwrap();
    theirs.wait(&to).unwrap().wait().unwrap();
    assert!(matches!(ours.wait(&to), Err(Error::ContextMismatch { .. })));
}

#[test]
fn a_device_names_what_it_can_share_and_nothing_without_the_extension() {
    let device = common::device();
    let memory = device.has_extension("cl_khr_external_memory");
    assert_eq!(device.memory_import_kinds().is_empty(), !memory);
    if !device.has_extension("cl_khr_external_semaphore") {
        assert!(device.semaphore_import_kinds().is_empty());
        assert!(device.semaphore_export_kinds().is_empty());
    }
    let uuid = device.uuid();
    assert!(uuid.is_none() || device.has_extension("cl_khr_device_uuid"));
    assert_ne!(uuid, Some([0; 16]));
}
