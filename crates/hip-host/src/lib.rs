//! HIP, HIPRTC, rocBLAS, rocSOLVER and the used part of HSA as a strict software device.
//!
//! Each function table holds real C functions with ROCm's error codes. A slot whose function is not built is empty; no
//! function pretends. The library exports no C symbol, so nothing here can stand in front of a real `hipMalloc`.
//!
//! | module | what |
//! |---|---|
//! | `device`, `error` | devices, their attributes; codes and the thread's last error |
//! | `memory` | an address registry, allocation between guard pages, copies and fills |
//! | `stream`, `event` | a thread for each stream, and points in it |
//! | `rtc`, `module`, `launch` | kernels: compiled by the machine's C++ compiler, loaded, run over a pool of threads |
//! | `blas`, `solver` | rocBLAS and rocSOLVER |
//! | `hsa`, [`foreign`] | who owns an address; OpenCL's memory made known |
//! | [`faults`] | failures and delays on demand |
//!
//! # What it enforces
//!
//! Where ROCm refuses, so does the model, with ROCm's code. Where ROCm's behaviour is undefined (a freed pointer, a
//! destroyed handle, OpenCL's device memory in `hipMemcpy`), the model answers an error; set `HIP_HOST_LOG=1` to read
//! why. Pointers *inside* kernels are raw, as on a GPU: allocations lie between guard pages, so an overrun faults.
//!
//! Fresh memory of up to 64 KiB holds the byte 0xa5 throughout, so that reading what nobody wrote shows.
//!
//! # What runs fast
//!
//! A block whose threads never wait for each other is a loop over its threads, which the compiler vectorises where
//! consecutive threads touch consecutive elements: such kernels run at memory speed. Threads that wait at barriers are
//! coroutines, tens of nanoseconds a barrier each. A grid-stride loop walks the memory once for every thread and is
//! slow where the stride exceeds the cache; one element a thread is the better form here.
//!
//! # Environment
//!
//! | variable | meaning |
//! |---|---|
//! | `HIP_HOST_DEVICES` | number of devices, 1 if unset |
//! | `HIP_HOST_LOG` | 1: say on standard error why a call was refused; 2: also every call with its answer |
//! | `HIP_HOST_FAIL`, `HIP_HOST_DELAY` | see [`faults`] |
//! | `HIPCL_CXX`, `CXX` | the C++ compiler; else `c++`, `g++`, `clang++` |
//! | `HIP_HOST_STRICT` | 2: following a `hipMalloc` pointer on the host faults while the device is idle; 1 if unset |
//! | `HIP_HOST_MARCH` | the processor kernels are compiled for, this one if unset |
//! | `HIP_HOST_SANITIZE` | `address`: kernels report the first byte outside of an allocation; needs the sanitizer preloaded |
//! | `HIPCL_CACHE_DIR` | where compiled kernels are kept, the user's cache folder if unset |

mod blas;
mod device;
mod error;
mod event;
pub mod faults;
pub mod foreign;
mod frame;
mod handles;
mod hsa;
mod launch;
mod log;
mod memory;
mod module;
mod rtc;
mod sanitizer;
mod solver;
mod stream;

pub use blas::rocblas_api;
pub use solver::rocsolver_api;

/// The table of HIP's functions.
#[must_use]
pub fn hip_api() -> hip_sys::Api {
    use memory::{copy, set};
    hip_sys::Api {
        hipInit: Some(device::init),
        hipRuntimeGetVersion: Some(device::runtime_get_version),
        hipDriverGetVersion: Some(device::driver_get_version),
        hipGetErrorName: Some(error::get_error_name),
        hipGetErrorString: Some(error::get_error_string),
        hipDrvGetErrorName: Some(error::drv_get_error_name),
        hipDrvGetErrorString: Some(error::drv_get_error_string),
        hipGetLastError: Some(error::get_last_error),
        hipPeekAtLastError: Some(error::peek_at_last_error),

        hipGetDeviceCount: Some(device::get_device_count),
        hipSetDevice: Some(device::set_device),
        hipGetDevice: Some(device::get_device),
        hipDeviceGet: Some(device::device_get),
        hipDeviceGetName: Some(device::device_get_name),
        hipDeviceGetPCIBusId: Some(device::device_get_pci_bus_id),
        hipDeviceGetByPCIBusId: Some(device::device_get_by_pci_bus_id),
        hipDeviceGetUuid: Some(device::device_get_uuid),
        hipDeviceTotalMem: Some(device::device_total_mem),
        hipDeviceComputeCapability: Some(device::device_compute_capability),
        hipDeviceGetAttribute: Some(device::device_get_attribute),
        hipGetDevicePropertiesR0600: Some(device::get_device_properties),
        hipDeviceSynchronize: Some(device::device_synchronize),
        hipMemGetInfo: Some(device::mem_get_info),

        hipMalloc: Some(memory::malloc),
        hipFree: Some(memory::free_device),
        hipMallocManaged: Some(memory::malloc_managed),
        hipHostMalloc: Some(memory::host_malloc),
        hipHostAlloc: Some(memory::host_alloc),
        hipMallocHost: Some(memory::malloc_host),
        hipHostFree: Some(memory::host_free),
        hipFreeHost: Some(memory::free_host),
        hipHostRegister: Some(memory::host_register),
        hipHostUnregister: Some(memory::host_unregister),
        hipHostGetDevicePointer: Some(memory::host_get_device_pointer),
        hipHostGetFlags: Some(memory::host_get_flags),
        hipPointerGetAttributes: Some(memory::pointer_get_attributes),
        hipMemGetAddressRange: Some(memory::mem_get_address_range),
        hipMemPtrGetInfo: Some(memory::mem_ptr_get_info),

        hipMemcpy: Some(copy::memcpy),
        hipMemcpyAsync: Some(copy::memcpy_async),
        hipMemcpyWithStream: Some(copy::memcpy_with_stream),
        hipMemcpyHtoD: Some(copy::memcpy_htod),
        hipMemcpyDtoH: Some(copy::memcpy_dtoh),
        hipMemcpyDtoD: Some(copy::memcpy_dtod),
        hipMemcpyHtoDAsync: Some(copy::memcpy_htod_async),
        hipMemcpyDtoHAsync: Some(copy::memcpy_dtoh_async),
        hipMemcpyDtoDAsync: Some(copy::memcpy_dtod_async),
        hipMemcpy2D: Some(copy::memcpy_2d),
        hipMemcpy2DAsync: Some(copy::memcpy_2d_async),
        hipMemset: Some(set::memset),
        hipMemsetAsync: Some(set::memset_async),
        hipMemsetD8: Some(set::memset_d8),
        hipMemsetD8Async: Some(set::memset_d8_async),
        hipMemsetD16: Some(set::memset_d16),
        hipMemsetD16Async: Some(set::memset_d16_async),
        hipMemsetD32: Some(set::memset_d32),
        hipMemsetD32Async: Some(set::memset_d32_async),

        hipStreamCreate: Some(stream::stream_create),
        hipStreamCreateWithFlags: Some(stream::stream_create_with_flags),
        hipStreamCreateWithPriority: Some(stream::stream_create_with_priority),
        hipDeviceGetStreamPriorityRange: Some(stream::device_get_stream_priority_range),
        hipStreamDestroy: Some(stream::stream_destroy),
        hipStreamSynchronize: Some(stream::stream_synchronize),
        hipStreamQuery: Some(stream::stream_query),
        hipStreamWaitEvent: Some(stream::stream_wait_event),
        hipStreamGetFlags: Some(stream::stream_get_flags),
        hipStreamGetPriority: Some(stream::stream_get_priority),
        hipStreamGetDevice: Some(stream::stream_get_device),
        hipStreamAddCallback: Some(stream::stream_add_callback),
        hipLaunchHostFunc: Some(stream::launch_host_func),

        hipEventCreate: Some(event::event_create),
        hipEventCreateWithFlags: Some(event::event_create_with_flags),
        hipEventDestroy: Some(event::event_destroy),
        hipEventRecord: Some(event::event_record),
        hipEventQuery: Some(event::event_query),
        hipEventSynchronize: Some(event::event_synchronize),
        hipEventElapsedTime: Some(event::event_elapsed_time),

        hipModuleLoad: Some(module::module_load),
        hipModuleLoadData: Some(module::module_load_data),
        hipModuleLoadDataEx: Some(module::module_load_data_ex),
        hipModuleUnload: Some(module::module_unload),
        hipModuleGetFunction: Some(module::module_get_function),
        hipModuleGetGlobal: Some(module::module_get_global),
        hipModuleLaunchKernel: Some(launch::module_launch_kernel),
        ..hip_sys::Api::EMPTY
    }
}

/// The table of HIPRTC's functions.
#[must_use]
pub fn rtc_api() -> hip_sys::RtcApi {
    rtc::api()
}

/// The table of the HSA functions in use.
#[must_use]
pub fn hsa_api() -> hsa_sys::Api {
    hsa::api()
}
