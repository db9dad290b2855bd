//! Foreign contexts, queues and buffers: what is told about them, retained once, ordered.

mod common;

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use clmgr::opencl_sys::{self, cl_command_queue, cl_context, cl_mem, cl_mem_flags, cl_uint};
use clmgr::{
    Access, Api, Arg, BufferFactory, BufferStrategy, Context, Device, Error, ExternalBuffer, ExternalContexts, Manager,
    NdRange, Needs, Program, RegularBuffer,
};

const SOURCE: &str = "
kernel void spin(global uint *x, uint rounds, uint last) {
    uint state = x[0];
    for (uint i = 0; i < rounds; ++i)
        state = state * 1664525u + 1013904223u + i;
    x[0] = state;
    x[last] = state | 1u;
}";

const ROUNDS: u32 = 30_000_000;

/// Objects as another part of the program would create them, by OpenCL's own functions.
struct Foreign {
    api: Api,
    device: Device,
    context: cl_context,
    queue: cl_command_queue,
}

impl Foreign {
    fn new(device: &Device) -> Self {
        Self::with_queue(device, 0).unwrap()
    }

    /// The error is the code of the queue's creation.
    fn with_queue(device: &Device, properties: u64) -> Result<Self, i32> {
        let api = *device.api();
        let id = device.raw();
        let mut code = 0;
        // SAFETY: one live device, no properties, a valid place for the code.
        let context =
            unsafe { api.clCreateContext.unwrap()(null(), 1, &raw const id, None, null_mut(), &raw mut code) };
        assert_eq!(code, 0);
        // SAFETY: the context is of this device.
        let queue = unsafe { api.clCreateCommandQueue.unwrap()(context, id, properties, &raw mut code) };
        if code != 0 {
            // SAFETY: nothing else has the context.
            unsafe { api.clReleaseContext.unwrap()(context) };
            return Err(code);
        }
        Ok(Self {
            api,
            device: device.clone(),
            context,
            queue,
        })
    }

    fn buffer(&self, flags: cl_mem_flags, bytes: usize, host: *mut c_void) -> cl_mem {
        let mut code = 0;
        // SAFETY: the tests give host memory of this size or none.
        let buffer = unsafe { self.api.clCreateBuffer.unwrap()(self.context, flags, bytes, host, &raw mut code) };
        assert_eq!(code, 0);
        buffer
    }

    fn release(&self, buffer: cl_mem) {
        // SAFETY: the tests release the reference of the creation once.
        assert_eq!(unsafe { self.api.clReleaseMemObject.unwrap()(buffer) }, 0);
    }

    fn references_of_buffer(&self, buffer: cl_mem) -> u32 {
        count(|size, place| {
            // SAFETY: the buffer is alive; the property is a `cl_uint`.
            unsafe {
                self.api.clGetMemObjectInfo.unwrap()(
                    buffer,
                    opencl_sys::CL_MEM_REFERENCE_COUNT,
                    size,
                    place,
                    null_mut(),
                )
            }
        })
    }

    fn references_of_queue(&self) -> u32 {
        count(|size, place| {
            // SAFETY: the queue is alive; the property is a `cl_uint`.
            unsafe {
                self.api.clGetCommandQueueInfo.unwrap()(
                    self.queue,
                    opencl_sys::CL_QUEUE_REFERENCE_COUNT,
                    size,
                    place,
                    null_mut(),
                )
            }
        })
    }

    fn references_of_context(&self) -> u32 {
        count(|size, place| {
            // SAFETY: the context is alive; the property is a `cl_uint`.
            unsafe {
                self.api.clGetContextInfo.unwrap()(
                    self.context,
                    opencl_sys::CL_CONTEXT_REFERENCE_COUNT,
                    size,
                    place,
                    null_mut(),
                )
            }
        })
    }
}

fn count(get: impl FnOnce(usize, *mut c_void) -> i32) -> u32 {
    let mut count: cl_uint = 0;
    assert_eq!(get(size_of::<cl_uint>(), (&raw mut count).cast()), 0);
    count
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: both references are those of the creation.
        unsafe {
            self.api.clReleaseCommandQueue.unwrap()(self.queue);
            self.api.clReleaseContext.unwrap()(self.context);
        }
    }
}

fn open() -> (Manager, Foreign, ExternalContexts) {
    let manager = Manager::load().unwrap();
    let device = manager.devices().remove(0);
    let foreign = Foreign::new(&device);
    let contexts = manager.external(&device);
    (manager, foreign, contexts)
}

#[test]
fn a_foreign_buffer_tells_everything_about_itself() {
    let (_, foreign, contexts) = open();
    let mut host = vec![0u128; 64];
    let flags = opencl_sys::CL_MEM_READ_ONLY | opencl_sys::CL_MEM_USE_HOST_PTR;
    let buffer = foreign.buffer(flags, 1024, host.as_mut_ptr().cast());
    // SAFETY: the buffer is alive.
    let info = unsafe { contexts.buffer_info(buffer) }.unwrap();
    assert_eq!((info.bytes, info.flags & flags), (1024, flags));
    assert_eq!(info.access.device, Access::ReadOnly);
    assert_eq!(info.context, foreign.context);
    assert_eq!(info.devices, std::slice::from_ref(&foreign.device));
    assert_eq!(info.host_ptr, host.as_mut_ptr().cast());
    assert_eq!((info.offset, info.is_sub_buffer()), (0, false));
    assert_eq!((info.map_count, info.references), (0, 1));
    assert_ne!(info.uses_svm, Some(true));
    assert_eq!(info.external, None);
    assert_eq!(info.sub_buffer_alignment, foreign.device.sub_buffer_alignment());
    assert!(info.base_alignment.is_power_of_two());
    assert_eq!(info.len::<u32>().unwrap(), 256);
    assert!(matches!(
        info.len::<[u32; 3]>(),
        Err(Error::Remainder {
            bytes: 1024,
            element: 12
        })
    ));
    assert!(matches!(info.len::<()>(), Err(Error::Zero { .. })));
    foreign.release(buffer);
}

#[test]
fn a_sub_buffer_tells_its_parent_and_offset() {
    let (_, foreign, contexts) = open();
    let step = foreign.device.sub_buffer_alignment();
    // SAFETY: the buffer is alive, and nothing else uses it.
    let (whole, info) = unsafe {
        let raw = foreign.buffer(0, 3 * step, null_mut());
        let whole = ExternalBuffer::<u8>::wrap(&contexts, raw, Needs::default()).unwrap();
        foreign.release(raw);
        let part = whole.part(step..2 * step).unwrap();
        let info = contexts.buffer_info(part.raw()).unwrap();
        drop(part);
        (whole, info)
    };
    assert_eq!((info.offset, info.bytes, info.parent), (step, step, whole.raw()));
    assert!(info.is_sub_buffer());
    assert_eq!(info.base_alignment, step.min(1 << step.trailing_zeros()));
}

#[test]
fn foreign_objects_are_retained_once_and_released_once() {
    let (manager, foreign, contexts) = open();
    let buffer = foreign.buffer(0, 4096, null_mut());
    let (context_before, queue_before) = (foreign.references_of_context(), foreign.references_of_queue());
    // SAFETY: all handles are alive, and nothing else uses the buffer.
    unsafe {
        let context = contexts.context(foreign.context).unwrap();
        let again = contexts.context(foreign.context).unwrap();
        assert_eq!(context, again);
        assert_eq!(foreign.references_of_context(), context_before + 1);
        let queue = contexts.queue(foreign.queue).unwrap();
        let same = manager.external(&foreign.device).queue(foreign.queue).unwrap();
        assert_eq!(queue, same);
        assert_eq!(foreign.references_of_queue(), queue_before + 1);
        let one = ExternalBuffer::<u32>::wrap(&contexts, buffer, Needs::default()).unwrap();
        let two = ExternalBuffer::<u32>::wrap(&contexts, buffer, Needs::default()).unwrap();
        assert_eq!(foreign.references_of_buffer(buffer), 3);
        assert_eq!(one.context(), two.context());
        drop((one, two));
        assert_eq!(foreign.references_of_buffer(buffer), 1);
        let chosen = manager.queue_for_buffer(&foreign.device, buffer).unwrap();
        assert_eq!(chosen, *queue);
    }
    assert_eq!(foreign.references_of_context(), context_before);
    assert_eq!(foreign.references_of_queue(), queue_before);
    foreign.release(buffer);
}

#[test]
fn a_refused_buffer_is_left_as_it_was() {
    let (_, foreign, contexts) = open();
    let buffer = foreign.buffer(opencl_sys::CL_MEM_READ_ONLY, 1000, null_mut());
    let before = foreign.references_of_context();
    let wrap = |needs| {
        // SAFETY: the buffer is alive, and nothing else uses it.
        unsafe { ExternalBuffer::<u32>::wrap(&contexts, buffer, needs) }
    };
    let reading = Needs {
        len: Some(250),
        device: Access::ReadOnly,
    };
    assert!(wrap(reading).is_ok());
    let refused = wrap(Needs::default()).unwrap_err();
    assert!(matches!(refused, Error::Access { .. }), "{refused}");
    let longer = Needs {
        len: Some(251),
        ..reading
    };
    assert!(matches!(wrap(longer), Err(Error::LengthMismatch { .. })));
    // SAFETY: as above.
    let odd = unsafe { ExternalBuffer::<[u8; 3]>::wrap(&contexts, buffer, reading_any()) };
    assert!(matches!(odd, Err(Error::Remainder { .. })));
    assert_eq!(foreign.references_of_buffer(buffer), 1);
    assert_eq!(foreign.references_of_context(), before);
    foreign.release(buffer);
}

fn reading_any() -> Needs {
    Needs {
        len: None,
        device: Access::ReadOnly,
    }
}

#[test]
fn null_handles_and_unordered_queues_are_refused() {
    let (manager, foreign, contexts) = open();
    // SAFETY: null is allowed.
    unsafe {
        assert!(matches!(contexts.context(null_mut()), Err(Error::Foreign { .. })));
        assert!(matches!(contexts.queue(null_mut()), Err(Error::Foreign { .. })));
        assert!(matches!(contexts.buffer_info(null_mut()), Err(Error::Foreign { .. })));
        let queue = manager.queue_for_buffer(&foreign.device, null_mut());
        assert!(matches!(queue, Err(Error::Foreign { .. })));
    }
    let properties = opencl_sys::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    let unordered = match Foreign::with_queue(&foreign.device, properties) {
        Ok(unordered) => unordered,
        Err(opencl_sys::CL_INVALID_QUEUE_PROPERTIES) => {
            return common::skipped("the device has no out-of-order queues");
        }
        Err(code) => panic!("{code}"),
    };
    // SAFETY: the queue is alive.
    let refused = unsafe { contexts.queue(unordered.queue) }.unwrap_err();
    assert!(refused.to_string().contains("out of order"), "{refused}");
    assert_eq!(unordered.references_of_queue(), 1);
}

#[test]
fn an_adopted_buffer_is_used_like_our_own_and_outlives_its_creator() {
    let (_, foreign, contexts) = open();
    let raw = foreign.buffer(0, 400, null_mut());
    // SAFETY: the buffer is alive, and nothing else uses it.
    let buffer = unsafe { ExternalBuffer::<u32>::wrap(&contexts, raw, Needs::default()) }.unwrap();
    foreign.release(raw);
    let factory = BufferFactory::new(buffer.context());
    let elsewhere = BufferFactory::new(&common::context());
    let queue = buffer.context().queue().unwrap();
    drop(foreign);
    let mut buffer = factory.adopt(buffer).unwrap();
    assert_eq!(buffer.strategy(), BufferStrategy::External);
    assert!(
        buffer.explain().starts_with("external: adopted, 400 bytes"),
        "{}",
        buffer.explain()
    );
    buffer.write(&queue, &[3; 100]).unwrap();
    buffer.map_mut(&queue).unwrap()[5] = 4;
    let mut data = [0; 100];
    buffer.read(&queue, &mut data).unwrap();
    assert_eq!((data[4], data[5]), (3, 4));
    let refused = elsewhere.alloc::<u32>(4, clmgr::BufferRequest::Exactly(BufferStrategy::External));
    assert!(matches!(refused, Err(Error::NotSupported { .. })));
}

#[test]
fn a_buffer_of_another_context_is_not_adopted() {
    let (_, foreign, contexts) = open();
    let raw = foreign.buffer(0, 400, null_mut());
    // SAFETY: the buffer is alive, and nothing else uses it.
    let buffer = unsafe { ExternalBuffer::<u32>::wrap(&contexts, raw, Needs::default()) }.unwrap();
    foreign.release(raw);
    let other = BufferFactory::new(&common::context());
    assert!(matches!(other.adopt(buffer), Err(Error::ContextMismatch { .. })));
}

#[test]
fn our_queue_and_a_foreign_one_of_the_same_context_take_turns() {
    let (_, foreign, contexts) = open();
    // SAFETY: the handles are alive.
    let (context, theirs) = unsafe {
        (
            contexts.context(foreign.context).unwrap(),
            contexts.queue(foreign.queue).unwrap(),
        )
    };
    let ours = context.queue().unwrap();
    let (event, last) = spin_then_copy(&context, &theirs, |copying| theirs.run_before(copying), &ours);
    assert!(event && last, "our queue did not wait for the foreign one");
    let (event, last) = spin_then_copy(&context, &ours, |_| theirs.run_after(&ours), &theirs);
    assert!(event && last, "the foreign queue did not wait for ours");
}

/// Runs a long kernel on `first` and, after `order`, a copy of its result on `second`. Returns
/// whether the kernel had ended when the copy had, and whether the copy holds its result.
fn spin_then_copy(
    context: &Context,
    first: &clmgr::Queue,
    order: impl FnOnce(&clmgr::Queue) -> clmgr::Result<()>,
    second: &clmgr::Queue,
) -> (bool, bool) {
    let program = Program::build(context, SOURCE, "").unwrap();
    let mut source = RegularBuffer::<u32>::new(context, 1000).unwrap();
    source.write(first, &[0; 1000]).unwrap();
    let target = RegularBuffer::<u32>::new(context, 1000).unwrap();
    let rounds = common::rounds(ROUNDS);
    let args = [source.arg(), Arg::scalar(&rounds), Arg::scalar(&999u32)];
    // SAFETY: the buffer holds 1000 elements, and the copy is ordered after the kernel.
    let kernel = unsafe { program.kernel("spin").unwrap().launch(first, NdRange::d1(1), &args) }.unwrap();
    order(second).unwrap();
    let api = context.api();
    // Enqueued by OpenCL's own function, so that only `order` orders it.
    // SAFETY: queue and buffers are alive and of one context; the ranges lie in them.
    let code = unsafe {
        api.clEnqueueCopyBuffer.unwrap()(
            second.raw(),
            source.raw(),
            target.raw(),
            0,
            0,
            4000,
            0,
            null(),
            null_mut(),
        )
    };
    assert_eq!(code, 0);
    second.finish().unwrap();
    let ended = kernel.is_complete().unwrap();
    let mut last = [0];
    target.read_at(second, 999, &mut last).unwrap();
    (ended, last[0] & 1 == 1)
}

#[test]
fn queues_of_two_contexts_are_ordered_by_a_callback() {
    let (_, foreign, contexts) = open();
    // SAFETY: the queue is alive.
    let theirs = unsafe { contexts.queue(foreign.queue) }.unwrap();
    let here = common::context();
    let ours = here.queue().unwrap();
    let program = Program::build(theirs.context(), SOURCE, "").unwrap();
    let buffer = RegularBuffer::<u32>::new(theirs.context(), 1000).unwrap();
    let rounds = common::rounds(ROUNDS);
    let args = [buffer.arg(), Arg::scalar(&rounds), Arg::scalar(&999u32)];
    // SAFETY: the buffer holds 1000 elements, which nothing else uses.
    let kernel = unsafe { program.kernel("spin").unwrap().launch(&theirs, NdRange::d1(1), &args) }.unwrap();
    assert!(matches!(ours.wait_for(&kernel), Err(Error::ContextMismatch { .. })));
    theirs.run_before(&ours).unwrap();
    let after = ours.record().unwrap();
    after.wait().unwrap();
    assert!(
        kernel.is_complete().unwrap(),
        "our queue did not wait for the other context"
    );
    // The way back, with nothing to wait for.
    theirs.run_after(&ours).unwrap();
    theirs.finish().unwrap();
}
