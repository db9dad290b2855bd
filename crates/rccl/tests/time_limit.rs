//! A rank that never comes ends the others' wait. Apart from the other tests: the limit is the process'.

use std::sync::Arc;
use std::time::Duration;

use rccl::{Communicator, Library, ReduceOp, UniqueId};
use rccl_sys::ncclResult_t;

#[test]
fn a_rank_that_never_comes_is_named_at_the_time_limit() {
    // SAFETY: the only test of this program, before anything else reads the environment.
    unsafe { std::env::set_var("HIP_HOST_DEVICES", "3") };
    // SAFETY: one platform's functions.
    let (runtime, library) = unsafe {
        (
            hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None).unwrap(),
            Library::from_tables(Arc::new(hip_host_rccl::rccl_api())),
        )
    };
    let devices: Vec<_> = (0..3).map(|at| runtime.device(at).unwrap()).collect();
    hip_host_rccl::set_time_limit(Duration::from_millis(50));

    let id = UniqueId::new(&library).unwrap();
    let error = Communicator::new(&library, &devices[0], &id, 0, 2).unwrap_err();
    assert_eq!(error.code(), Some(ncclResult_t::ncclRemoteError), "{error}");
    assert!(error.to_string().contains("ranks [1] of 2"), "{error}");

    let ranks = Communicator::all(&library, &devices).unwrap();
    let stream = devices[1].stream().unwrap();
    let mut memory = devices[1].alloc_zeroed::<f32>(3).unwrap();
    ranks[1]
        .all_reduce_in_place(&mut memory, ReduceOp::Sum, &stream)
        .unwrap();
    let error = ranks[1].wait(&stream).unwrap_err();
    assert_eq!(error.code(), Some(ncclResult_t::ncclRemoteError), "{error}");
    assert!(error.to_string().contains("ranks [0, 2] of 3"), "{error}");
    let whole = Communicator::all(&library, &devices).unwrap();
    let error = whole[2].split(Some(0), 0).unwrap_err();
    assert_eq!(error.code(), Some(ncclResult_t::ncclRemoteError), "{error}");
    assert!(error.to_string().contains("ranks [0, 1] of 3"), "{error}");
    // The others are told without a wait.
    assert!(ranks[0].check().is_err() && ranks[2].check().is_err());
    assert!(stream.synchronize().is_err());
}
