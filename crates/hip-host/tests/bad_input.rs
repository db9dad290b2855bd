//! Every function of HIP with arguments that are wrong in one way throughout: none crashes, none takes them for good
//! ones, and the device works afterwards.

mod common;

use std::ffi::c_void;
use std::mem::MaybeUninit;

use common::{download, hip, is_child, ok, run_child, upload};
#[allow(clippy::wildcard_imports, reason = "the types of all signatures")]
use hip_sys::*;

/// How the arguments are wrong.
#[derive(Clone, Copy)]
enum Wrong {
    /// Zero and null throughout.
    Null,
    /// Addresses of ordinary memory where handles and device memory belong; numbers as large as they get.
    Huge,
    /// As above, with numbers of -1 or 1.
    Odd,
}

/// Room for whatever a function writes, and what it reads first: zeros.
#[repr(C, align(64))]
struct Scratch([u64; 8192]);

/// One wrong argument; addresses are `scratch`.
trait Argument: Sized {
    fn wrong(wrong: Wrong, scratch: *mut c_void) -> Self;
}

impl<T> Argument for *mut T {
    fn wrong(wrong: Wrong, scratch: *mut c_void) -> Self {
        match wrong {
            Wrong::Null => std::ptr::null_mut(),
            Wrong::Huge | Wrong::Odd => scratch.cast(),
        }
    }
}

impl<T> Argument for *const T {
    fn wrong(wrong: Wrong, scratch: *mut c_void) -> Self {
        <*mut T>::wrong(wrong, scratch).cast_const()
    }
}

macro_rules! numbers {
    ($($ty:ty)*) => {$(
        impl Argument for $ty {
            fn wrong(wrong: Wrong, _: *mut c_void) -> Self {
                match wrong {
                    Wrong::Null => 0,
                    Wrong::Huge => <$ty>::MAX,
                    Wrong::Odd if <$ty>::MIN == 0 => 1,
                    Wrong::Odd => <$ty>::MIN,
                }
            }
        }
    )*};
}

numbers!(i32 u32 u64 usize u16 u8);

impl Argument for f32 {
    fn wrong(_: Wrong, _: *mut c_void) -> Self {
        f32::NAN
    }
}

/// C structures, enums and optional functions: zero bytes are a value of each.
macro_rules! zeroed {
    ($($ty:ty)*) => {$(
        impl Argument for $ty {
            fn wrong(_: Wrong, _: *mut c_void) -> Self {
                // SAFETY: a C structure of numbers and nullable pointers, or an optional function pointer.
                unsafe { MaybeUninit::zeroed().assume_init() }
            }
        }
    )*};
}

zeroed! {
    hipHostFn_t hipStreamCallback_t dim3 hipExtent hipPitchedPtr hipIpcMemHandle_t hipIpcEventHandle_t
}

/// Enums: no value of theirs, or the first.
macro_rules! enums {
    ($($ty:ident)*) => {$(
        impl Argument for $ty {
            fn wrong(wrong: Wrong, _: *mut c_void) -> Self {
                match wrong {
                    Wrong::Null => $ty(0),
                    Wrong::Huge | Wrong::Odd => $ty(0x7fff_0000),
                }
            }
        }
    )*};
}

enums! {
    hipError_t hipDeviceAttribute_t hipDeviceP2PAttr hipLimit_t hipFuncCache_t hipSharedMemConfig hipMemcpyKind
    hipMemoryAdvise hipMemRangeAttribute hipMemPoolAttr hipMemAllocationHandleType hipMemAllocationGranularity_flags
    hipStreamCaptureMode hipFunction_attribute hipFuncAttribute hipPointer_attribute hipChannelFormatKind
    hipGraphMemAttributeType hipGraphDebugDotFlags hipJitInputType hipLaunchAttributeID hipArray_Format
    hipTextureAddressMode hipTextureFilterMode hipResourceViewFormat
}

/// What a result says, if it is a status.
trait Outcome {
    fn succeeded(&self) -> bool;
}

impl Outcome for hipError_t {
    fn succeeded(&self) -> bool {
        *self == hipError_t::hipSuccess
    }
}

impl Outcome for i32 {
    fn succeeded(&self) -> bool {
        false
    }
}

impl Outcome for hipChannelFormatDesc {
    fn succeeded(&self) -> bool {
        false
    }
}

impl<T> Outcome for *const T {
    fn succeeded(&self) -> bool {
        false
    }
}

/// Defines a function that calls every slot once, and gives the names of those that report a success.
macro_rules! call_everything {
    ($(fn $name:ident($($argument:ident: $ty:ty),* $(,)?) $(-> $result:ty)? = $slot:ident;)*) => {
        fn successes(wrong: Wrong) -> Vec<&'static str> {
            let table = hip_host::hip_api();
            let mut names = Vec::new();
            $(if let Some(function) = table.$slot {
                let mut scratch = Box::new(Scratch([0; 8192]));
                let _room: *mut c_void = (&raw mut *scratch).cast();
                eprintln!("{}", stringify!($name));
                // SAFETY: where an address is given, it is that of zeroed memory with room for any result; all else is
                // an argument that the function promises to refuse.
                let outcome = unsafe { function($(<$ty as Argument>::wrong(wrong, _room)),*) };
                if Outcome::succeeded(&outcome) {
                    names.push(stringify!($name));
                }
                drop(scratch);
            })*
            names
        }
    };
}

hip_sys::for_each_function!(call_everything);

/// Zero is a device, a size of nothing or the default of each of these; null the default stream, or what may be freed.
const FINE_WITH_NOTHING: &[&str] = &[
    "hipConfigureCall",
    "hipCtxSetCurrent",
    "hipDeviceGetStreamPriorityRange",
    "hipDeviceGraphMemTrim",
    "hipDevicePrimaryCtxGetState",
    "hipDevicePrimaryCtxRelease",
    "hipDevicePrimaryCtxReset",
    "hipDeviceReset",
    "hipDeviceSetCacheConfig",
    "hipDeviceSetLimit",
    "hipDeviceSetSharedMemConfig",
    "hipDeviceSynchronize",
    "hipFree",
    "hipFreeAsync",
    "hipFreeHost",
    "hipFuncSetCacheConfig",
    "hipFuncSetSharedMemConfig",
    "hipHostFree",
    "hipInit",
    "hipMemcpy",
    "hipMemcpy2D",
    "hipMemcpy2DAsync",
    "hipMemcpy2DAsync_spt",
    "hipMemcpy2D_spt",
    "hipMemcpyAsync",
    "hipMemcpyAsync_spt",
    "hipMemcpyDtoD",
    "hipMemcpyDtoDAsync",
    "hipMemcpyDtoH",
    "hipMemcpyDtoHAsync",
    "hipMemcpyHtoD",
    "hipMemcpyHtoDAsync",
    "hipMemcpyPeer",
    "hipMemcpyPeerAsync",
    "hipMemcpyWithStream",
    "hipMemcpy_spt",
    "hipMemset",
    "hipMemset2D",
    "hipMemset2DAsync",
    "hipMemset2DAsync_spt",
    "hipMemset2D_spt",
    "hipMemset3D",
    "hipMemset3DAsync",
    "hipMemset3DAsync_spt",
    "hipMemset3D_spt",
    "hipMemsetAsync",
    "hipMemsetAsync_spt",
    "hipMemsetD16",
    "hipMemsetD16Async",
    "hipMemsetD32",
    "hipMemsetD32Async",
    "hipMemsetD8",
    "hipMemsetD8Async",
    "hipMemset_spt",
    "hipSetDevice",
    "hipSetDeviceFlags",
    "hipStreamBeginCapture_spt",
    "hipStreamQuery",
    "hipStreamSynchronize",
];

/// These only write a result, or take an extent or mode of zero from the memory they are given.
const FINE_WITH_ROOM: &[&str] = &[
    "hipChooseDeviceR0000",
    "hipChooseDeviceR0600",
    "hipConfigureCall",
    "hipCtxGetCurrent",
    "hipCtxGetDevice",
    "hipCtxGetSharedMemConfig",
    "hipDeviceCanAccessPeer",
    "hipDeviceGetCacheConfig",
    "hipDeviceGetSharedMemConfig",
    "hipDeviceGetStreamPriorityRange",
    "hipDeviceReset",
    "hipDeviceSynchronize",
    "hipDriverGetVersion",
    "hipEventCreate",
    "hipExtStreamCreateWithCUMask",
    "hipFuncSetSharedMemConfig",
    "hipGetDevice",
    "hipGetDeviceCount",
    "hipGetDeviceFlags",
    "hipMalloc3D",
    "hipMemGetInfo",
    "hipMemcpy3D",
    "hipMemcpy3D_spt",
    "hipMemset3D",
    "hipMemset3D_spt",
    "hipPointerGetAttributes",
    "hipRuntimeGetVersion",
    "hipStreamCreate",
    "hipThreadExchangeStreamCaptureMode",
];

/// Those, and one byte, one row or one flag is a good argument too; two equal device numbers are not peers.
const FINE_WITH_ONE: &[&str] = &[
    "hipChooseDeviceR0000",
    "hipChooseDeviceR0600",
    "hipConfigureCall",
    "hipCtxGetCurrent",
    "hipCtxGetDevice",
    "hipCtxGetSharedMemConfig",
    "hipDeviceCanAccessPeer",
    "hipDeviceGetCacheConfig",
    "hipDeviceGetSharedMemConfig",
    "hipDeviceGetStreamPriorityRange",
    "hipDeviceReset",
    "hipDeviceSynchronize",
    "hipDriverGetVersion",
    "hipDrvPointerGetAttributes",
    "hipEventCreate",
    "hipEventCreateWithFlags",
    "hipExtMallocWithFlags",
    "hipExtStreamCreateWithCUMask",
    "hipFuncSetSharedMemConfig",
    "hipGetDevice",
    "hipGetDeviceCount",
    "hipGetDeviceFlags",
    "hipHostAlloc",
    "hipHostMalloc",
    "hipHostRegister",
    "hipHostUnregister",
    "hipMalloc",
    "hipMalloc3D",
    "hipMallocHost",
    "hipMallocManaged",
    "hipMallocPitch",
    "hipMemAllocHost",
    "hipMemGetInfo",
    "hipMemcpy3D",
    "hipMemcpy3D_spt",
    "hipMemset3D",
    "hipMemset3D_spt",
    "hipPointerGetAttributes",
    "hipRuntimeGetVersion",
    "hipSetDeviceFlags",
    "hipStreamCreate",
    "hipStreamCreateWithFlags",
    "hipStreamCreateWithPriority",
    "hipThreadExchangeStreamCaptureMode",
];

/// In a process of its own: some calls, such as a reset, are not for tests beside it.
fn check(test: &str, wrong: Wrong, expected: &[&str]) {
    if !is_child() {
        let child = run_child(test, &[]);
        let errors = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{}\n{errors}", child.status);
        return;
    }
    assert_eq!(successes(wrong), expected);
    // A capture of the thread's own stream began, and made some of the calls after it unsafe.
    let mut graph = std::ptr::null_mut();
    let _ = hip!(hipStreamEndCapture_spt(std::ptr::null_mut(), &mut graph));
    ok!(hipSetDevice(0));
    let data: Vec<u32> = (0..1000).collect();
    let ptr = upload(&data);
    assert_eq!(download::<u32>(ptr, data.len()), data);
    ok!(hipFree(ptr));
}

#[test]
fn null_is_no_argument_where_one_is_needed() {
    check(
        "null_is_no_argument_where_one_is_needed",
        Wrong::Null,
        FINE_WITH_NOTHING,
    );
}

#[test]
fn huge_numbers_and_ordinary_memory_are_refused() {
    check(
        "huge_numbers_and_ordinary_memory_are_refused",
        Wrong::Huge,
        FINE_WITH_ROOM,
    );
}

#[test]
fn odd_numbers_and_ordinary_memory_are_refused() {
    check("odd_numbers_and_ordinary_memory_are_refused", Wrong::Odd, FINE_WITH_ONE);
}
