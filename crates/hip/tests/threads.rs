//! What may go to another thread, and what several threads may share: for each type on purpose, not by accident.

use std::cell::Cell;
use std::marker::PhantomData;

use hip::param::{In, InOut};
use hip::rtc::{Cache, Program};
use hip::*;

/// Whether a type has a trait. Where it has, the constant of `Has` hides the one that every type has.
macro_rules! has {
    ($type:ty: $trait:ident) => {{
        #[allow(dead_code, reason = "not asked of types that have the trait")]
        trait Otherwise {
            const ANSWER: bool = false;
        }
        struct Has<T>(PhantomData<T>);
        impl<T> Otherwise for Has<T> {}
        #[allow(dead_code, reason = "for types that have the trait")]
        impl<T: $trait> Has<T> {
            const ANSWER: bool = true;
        }
        Has::<$type>::ANSWER
    }};
}

macro_rules! threads {
    ($($type:ty: $send:literal $sync:literal;)*) => {$(
        assert_eq!(
            (has!($type: Send), has!($type: Sync)),
            ($send, $sync),
            "(Send, Sync) of {}",
            stringify!($type)
        );
    )*};
}

/// Plain data that one thread at a time may look at.
type Lonely = Cell<u32>;
/// Nothing for another thread.
type Bound = *const u32;

#[test]
fn types_cross_threads_exactly_as_far_as_hip_allows() {
    threads! {
        Runtime: true true;
        Device: true true;
        Stream: true true;
        Event: true true;
        Completion: true true;
        Flag<u32>: true true;
        Flag<u64>: true true;
        Module: true true;
        Function: true true;
        Kernel<(InOut<f32>, In<f32>, u32)>: true true;
        MemPool: true true;
        ExternalMemory: true true;
        ExternalSemaphore: true true;
        VirtualMemory: true true;
        IpcMemory: true true;
        IpcEvent: true true;
        Program: true true;
        Cache: true true;
        Error: true true;
        // "Not internally synchronized": one thread at a time; what was instantiated does not change any more.
        Graph: true false;
        GraphExec: true true;
    }
}

#[test]
fn memory_crosses_threads_as_far_as_its_elements() {
    threads! {
        DeviceBuffer<u32>: true true;
        DeviceBuffer<Lonely>: true false;
        DeviceBuffer<Bound>: false false;
        DeviceSlice<'static, u32>: true true;
        DeviceSlice<'static, Lonely>: false false;
        DeviceSlice<'static, Bound>: false false;
        DeviceSliceMut<'static, u32>: true true;
        DeviceSliceMut<'static, Lonely>: true false;
        DeviceSliceMut<'static, Bound>: false false;
        PinnedBuffer<u32>: true true;
        PinnedBuffer<Lonely>: true false;
        PinnedBuffer<Bound>: false false;
        ManagedBuffer<u32>: true true;
        ManagedBuffer<Lonely>: true false;
        ManagedBuffer<Bound>: false false;
        Registered<'static, u32>: true true;
        Registered<'static, Lonely>: true false;
        Registered<'static, Bound>: false false;
    }
}

#[test]
fn the_question_has_both_answers() {
    assert!(has!(u32: Send) && has!(u32: Sync));
    assert!(!has!(Bound: Send) && !has!(Bound: Sync));
}
