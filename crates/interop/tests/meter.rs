//! What the counters see: every way to copy, counted once each time bytes move.

mod common;

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

use clmgr::opencl_sys::{
    CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE,
    CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, CL_TRUE, cl_map_flags, cl_mem,
};
use hip_sys::{hipError_t, hipMemcpyKind};
use interop::{Bridge, Category, Counts, Options};

const BYTES: usize = 4096;
const ALL: u64 = BYTES as u64;
const KIND: hipMemcpyKind = hipMemcpyKind::hipMemcpyDeviceToDevice;

fn bridge() -> Bridge {
    Bridge::open(&common::selection(), &Options::default()).expect("a bridge")
}

fn during(bridge: &Bridge, work: impl FnOnce()) -> Counts {
    let before = bridge.meter().snapshot();
    work();
    bridge.meter().snapshot().since(&before)
}

/// Calls a function from the HIP table, which must exist and succeed.
macro_rules! hip {
    ($bridge:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let function = $bridge.hip_device().runtime().api().$function;
        let function = function.expect(stringify!($function));
        // SAFETY: live handles, and addresses of BYTES bytes of device memory.
        let status = unsafe { function($($argument),*) };
        assert_eq!(status, hipError_t::hipSuccess, stringify!($function));
    }};
}

/// Calls a function from the OpenCL table that returns an error code.
macro_rules! cl {
    ($bridge:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let function = $bridge.cl_context().api().$function;
        let function = function.expect(stringify!($function));
        // SAFETY: live handles, and addresses of BYTES bytes.
        let status = unsafe { function($($argument),*) };
        assert_eq!(status, 0, stringify!($function));
    }};
}

/// Two pieces of device memory.
fn memory(bridge: &Bridge) -> [*mut c_void; 2] {
    [(); 2].map(|()| {
        let mut ptr = null_mut();
        hip!(bridge, hipMalloc(&raw mut ptr, BYTES));
        ptr
    })
}

fn free(bridge: &Bridge, memory: [*mut c_void; 2]) {
    memory.into_iter().for_each(|ptr| hip!(bridge, hipFree(ptr)));
}

#[test]
fn a_captured_copy_counts_each_time_its_graph_runs_and_not_before() {
    let bridge = bridge();
    let [to, from] = memory(&bridge);
    let stream = bridge.stream().expect("a stream");
    let mut graph = None;
    let counts = during(&bridge, || {
        // The calls below go by the handle of the stream that records.
        let recorder = Cell::new(stream.raw());
        let captured: hip::Result<hip::Graph> = stream.capture_told(
            |handle| {
                recorder.set(handle);
                Ok(())
            },
            |_| {
                let handle = recorder.get();
                bridge.meter().count_as(Category::Input, || {
                    hip!(bridge, hipMemcpyAsync(to, from, BYTES, KIND, handle));
                });
                hip!(bridge, hipMemcpyAsync(to, from, BYTES / 2, KIND, handle));
                Ok(())
            },
        );
        graph = Some(captured.expect("a graph"));
    });
    assert_eq!(counts, Counts::default(), "nothing has run");
    let graph = graph.expect("it was captured");
    let runs = graph.instantiate().expect("an executable graph");
    drop(graph);
    let counts = during(&bridge, || {
        for _ in 0..3 {
            // SAFETY: the memory is alive, and no other code uses it.
            unsafe { runs.launch(&stream, &[]) }.expect("a launch");
        }
        stream.synchronize().expect("it ends");
    });
    assert_eq!(
        (counts.input, counts.data_set),
        (3 * ALL, 3 * ALL / 2),
        "{:?}",
        counts.calls
    );
    drop(runs);
    let counts = during(&bridge, || {
        hip!(bridge, hipMemcpyAsync(to, from, BYTES, KIND, stream.raw()));
        stream.synchronize().expect("it ends");
    });
    assert_eq!(counts.data_set, ALL, "the stream captures no more");
    free(&bridge, [to, from]);
}

#[test]
fn the_nodes_of_a_graph_count_as_they_are_when_it_runs() {
    let bridge = bridge();
    let [to, from] = memory(&bridge);
    let stream = bridge.stream().expect("a stream");
    let (mut graph, mut node, mut exec) = (null_mut(), null_mut(), null_mut());
    hip!(bridge, hipGraphCreate(&raw mut graph, 0));
    hip!(
        bridge,
        hipGraphAddMemcpyNode1D(&raw mut node, graph, null(), 0, to, from, BYTES, KIND)
    );
    let run = |exec| {
        let counts = during(&bridge, || {
            hip!(bridge, hipGraphLaunch(exec, stream.raw()));
            stream.synchronize().expect("it ends");
        });
        counts.data_set
    };
    let instantiated = |exec: &mut _, graph| {
        hip!(bridge, hipGraphInstantiate(exec, graph, null_mut(), null_mut(), 0));
    };
    instantiated(&mut exec, graph);
    assert_eq!(run(exec), ALL);
    hip!(bridge, hipGraphMemcpyNodeSetParams1D(node, to, from, BYTES / 2, KIND));
    assert_eq!(run(exec), ALL, "it was made before");
    let (mut wrong, mut result) = (null_mut(), hip_sys::hipGraphExecUpdateResult(0));
    hip!(bridge, hipGraphExecUpdate(exec, graph, &raw mut wrong, &raw mut result));
    assert_eq!(run(exec), ALL / 2);
    hip!(
        bridge,
        hipGraphExecMemcpyNodeSetParams1D(exec, node, to, from, BYTES / 4, KIND)
    );
    assert_eq!(run(exec), ALL / 4);
    // A graph that contains this one, and its clone.
    let (mut whole, mut inner, mut clone, mut twice) = (null_mut(), null_mut(), null_mut(), null_mut());
    hip!(bridge, hipGraphCreate(&raw mut whole, 0));
    hip!(
        bridge,
        hipGraphAddChildGraphNode(&raw mut inner, whole, null(), 0, graph)
    );
    hip!(bridge, hipGraphClone(&raw mut clone, whole));
    hip!(bridge, hipGraphDestroyNode(node));
    instantiated(&mut twice, clone);
    assert_eq!(run(twice), ALL / 2);
    hip!(bridge, hipGraphExecDestroy(exec));
    instantiated(&mut exec, graph);
    assert_eq!(run(exec), 0, "its only node is gone");
    for graph in [graph, whole, clone] {
        hip!(bridge, hipGraphDestroy(graph));
    }
    for exec in [exec, twice] {
        hip!(bridge, hipGraphExecDestroy(exec));
    }
    free(&bridge, [to, from]);
}

#[test]
fn a_three_dimensional_copy_counts_its_volume() {
    let bridge = bridge();
    let [to, from] = memory(&bridge);
    let pitched = |ptr| hip_sys::hipPitchedPtr {
        ptr,
        pitch: 64,
        xsize: 64,
        ysize: 8,
    };
    let copy = hip_sys::hipMemcpy3DParms {
        srcPtr: pitched(from),
        dstPtr: pitched(to),
        extent: hip_sys::hipExtent {
            width: 40,
            height: 5,
            depth: 3,
        },
        kind: KIND,
        ..Default::default()
    };
    let counts = during(&bridge, || hip!(bridge, hipMemcpy3D(&raw const copy)));
    assert_eq!(counts.data_set, 40 * 5 * 3, "{:?}", counts.calls);
    free(&bridge, [to, from]);
}

fn buffer(bridge: &Bridge, data: Option<&[u8]>) -> cl_mem {
    let create = bridge.cl_context().api().clCreateBuffer;
    let (flags, data) = match data {
        Some(data) => (CL_MEM_COPY_HOST_PTR, data.as_ptr().cast_mut().cast()),
        None => (CL_MEM_READ_WRITE, null_mut()),
    };
    let mut status = 0;
    // SAFETY: a living context, and BYTES bytes to copy if any.
    let buffer =
        unsafe { create.expect("clCreateBuffer")(bridge.cl_context().raw(), flags, BYTES, data, &raw mut status) };
    assert_eq!(status, 0);
    buffer
}

#[test]
fn a_buffer_made_of_host_memory_and_a_migration_count_their_bytes() {
    let bridge = bridge();
    let queue = bridge.native_handles().queue;
    let mut memory = null_mut();
    let counts = during(&bridge, || memory = buffer(&bridge, Some(&[7; BYTES])));
    assert_eq!(counts.data_set, ALL, "{:?}", counts.calls);
    let empty = buffer(&bridge, None);
    let migrated = |flags| {
        during(&bridge, || {
            let both = [memory, empty];
            cl!(
                bridge,
                clEnqueueMigrateMemObjects(queue, 2, both.as_ptr(), flags, 0, null(), null_mut())
            );
            cl!(bridge, clFinish(queue));
        })
    };
    assert_eq!(migrated(0).data_set, 2 * ALL);
    let nothing = migrated(CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED);
    assert_eq!(nothing, Counts::default());
    for memory in [memory, empty] {
        cl!(bridge, clReleaseMemObject(memory));
    }
}

#[test]
fn a_mapping_counts_what_it_reads_and_its_end_what_was_written() {
    let bridge = bridge();
    let queue = bridge.native_handles().queue;
    let memory = buffer(&bridge, None);
    let map = bridge.cl_context().api().clEnqueueMapBuffer;
    let mapped = |flags: cl_map_flags| {
        let (mut ptr, mut status) = (null_mut(), 0);
        let begun = during(&bridge, || {
            // SAFETY: a living queue and buffer, mapped once at a time.
            ptr = unsafe {
                map.expect("clEnqueueMapBuffer")(
                    queue,
                    memory,
                    CL_TRUE,
                    flags,
                    0,
                    BYTES,
                    0,
                    null(),
                    null_mut(),
                    &raw mut status,
                )
            };
        });
        assert_eq!(status, 0);
        let ended = during(&bridge, || {
            cl!(
                bridge,
                clEnqueueUnmapMemObject(queue, memory, ptr, 0, null(), null_mut())
            );
            cl!(bridge, clFinish(queue));
        });
        (begun.data_set, ended.data_set)
    };
    assert_eq!(mapped(CL_MAP_READ), (ALL, 0));
    assert_eq!(mapped(CL_MAP_WRITE), (ALL, ALL));
    assert_eq!(mapped(CL_MAP_READ | CL_MAP_WRITE), (ALL, ALL));
    assert_eq!(mapped(CL_MAP_WRITE_INVALIDATE_REGION), (0, ALL));
    cl!(bridge, clReleaseMemObject(memory));
}

/// What a category could outlive: an early return, and a panic.
/// A table of functions is counted by one meter as long as anything can call through it.
#[test]
fn what_outlives_its_bridge_is_not_counted_by_a_later_one() {
    let first = bridge();
    let (stream, queue) = (first.stream().expect("a stream"), first.queue().expect("a queue"));
    let mut on_hip = first.hip_device().alloc_zeroed::<u8>(BYTES).expect("memory");
    let mut on_cl = clmgr::RegularBuffer::<u8>::new(first.cl_context(), BYTES).expect("memory");
    let meter = first.meter().clone();
    drop(first);

    let later = bridge();
    let own = meter.snapshot();
    let counted = during(&later, || {
        on_hip.copy_from_slice(&stream, &[1; BYTES]).expect("a copy");
        on_cl.write(&queue, &[1; BYTES]).expect("a copy");
    });
    assert_eq!(counted, Counts::default());
    assert_eq!(
        meter.snapshot().since(&own).data_set,
        2 * ALL,
        "its own meter counts it"
    );
    assert_eq!(during(&later, || free(&later, memory(&later))), Counts::default());
}

#[test]
fn a_category_ends_with_its_work() {
    let bridge = bridge();
    let [to, from] = memory(&bridge);
    let copy = || hip!(bridge, hipMemcpy(to, from, BYTES, KIND));
    let meter = bridge.meter();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        meter.count_as(Category::Control, || std::panic::panic_any(()))
    }));
    assert!(panicked.is_err());
    let counts = during(&bridge, copy);
    assert_eq!((counts.data_set, counts.control), (ALL, 0));
    let counts = during(&bridge, || {
        meter.count_as(Category::Input, || {
            meter.count_as(Category::Result, copy);
            copy();
        });
    });
    assert_eq!((counts.input, counts.result), (ALL, ALL));
    let place = &counts.calls[0].caller;
    assert!(place.as_ref().is_some_and(|it| it.contains("meter.rs:")));
    free(&bridge, [to, from]);
}
