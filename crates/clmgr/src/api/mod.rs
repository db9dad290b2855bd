//! The table of OpenCL function pointers.

use std::ffi::{CStr, c_void};

use opencl_sys::cl_function_types as types;

macro_rules! api {
    ($($name:ident: $ty:ident = $since:literal;)*) => {
        /// The functions of one OpenCL library, one `Option` slot each.
        ///
        /// A function that the library lacks is an empty slot and hurts only the call that needs
        /// it. A caller may replace slots before the table is used, see
        /// [`Manager::load_with`](crate::Manager::load_with).
        #[derive(Clone, Copy, Debug)]
        #[allow(non_snake_case)]
        pub struct Api {
            $(
                #[doc = concat!("`", stringify!($name), "`, OpenCL ", $since, ".")]
                pub $name: types::$ty,
            )*
        }

        impl Api {
            /// A table with every slot empty.
            pub const EMPTY: Self = Self { $($name: None,)* };

            /// The symbols that the table has slots for, in the order of the slots.
            pub const SYMBOLS: &'static [&'static str] = &[$(stringify!($name),)*];

            /// Fills the table from `resolve`, which is asked for each symbol once.
            ///
            /// # Safety
            ///
            /// Each address that `resolve` returns is the function of that name with the
            /// signature of the OpenCL specification, and stays valid for ever.
            #[must_use]
            pub unsafe fn from_symbols(
                mut resolve: impl FnMut(&CStr) -> Option<*mut c_void>,
            ) -> Self {
                Self {
                    $(
                        $name: {
                            const NAME: &CStr = match CStr::from_bytes_with_nul(
                                concat!(stringify!($name), "\0").as_bytes(),
                            ) {
                                Ok(name) => name,
                                Err(_) => panic!("a symbol name holds a nul"),
                            };
                            match resolve(NAME) {
                                Some(address) if !address.is_null() => {
                                    // SAFETY: the caller promises that the address is this
                                    // function, and a non-null data pointer has the size and the
                                    // validity of an `Option` of a function pointer.
                                    unsafe {
                                        std::mem::transmute::<*mut c_void, types::$ty>(address)
                                    }
                                }
                                _ => None,
                            }
                        },
                    )*
                }
            }

            /// The names of the filled slots.
            pub fn present(&self) -> impl Iterator<Item = &'static str> {
                [$((stringify!($name), self.$name.is_some()),)*]
                    .into_iter()
                    .filter_map(|(name, filled)| filled.then_some(name))
            }

            /// The OpenCL version that introduced `symbol`.
            #[must_use]
            pub fn since(symbol: &str) -> Option<&'static str> {
                match symbol {
                    $(stringify!($name) => Some($since),)*
                    _ => None,
                }
            }
        }
    };
}

api! {
    clGetPlatformIDs: clGetPlatformIDs_t = "1.0";
    clGetPlatformInfo: clGetPlatformInfo_t = "1.0";
    clGetDeviceIDs: clGetDeviceIDs_t = "1.0";
    clGetDeviceInfo: clGetDeviceInfo_t = "1.0";
    clCreateContext: clCreateContext_t = "1.0";
    clRetainContext: clRetainContext_t = "1.0";
    clReleaseContext: clReleaseContext_t = "1.0";
    clGetContextInfo: clGetContextInfo_t = "1.0";
    clCreateCommandQueue: clCreateCommandQueue_t = "1.0";
    clRetainCommandQueue: clRetainCommandQueue_t = "1.0";
    clReleaseCommandQueue: clReleaseCommandQueue_t = "1.0";
    clGetCommandQueueInfo: clGetCommandQueueInfo_t = "1.0";
    clCreateBuffer: clCreateBuffer_t = "1.0";
    clRetainMemObject: clRetainMemObject_t = "1.0";
    clReleaseMemObject: clReleaseMemObject_t = "1.0";
    clGetMemObjectInfo: clGetMemObjectInfo_t = "1.0";
    clCreateProgramWithSource: clCreateProgramWithSource_t = "1.0";
    clCreateProgramWithBinary: clCreateProgramWithBinary_t = "1.0";
    clReleaseProgram: clReleaseProgram_t = "1.0";
    clBuildProgram: clBuildProgram_t = "1.0";
    clGetProgramInfo: clGetProgramInfo_t = "1.0";
    clGetProgramBuildInfo: clGetProgramBuildInfo_t = "1.0";
    clCreateKernel: clCreateKernel_t = "1.0";
    clReleaseKernel: clReleaseKernel_t = "1.0";
    clSetKernelArg: clSetKernelArg_t = "1.0";
    clGetKernelInfo: clGetKernelInfo_t = "1.0";
    clGetKernelWorkGroupInfo: clGetKernelWorkGroupInfo_t = "1.0";
    clWaitForEvents: clWaitForEvents_t = "1.0";
    clGetEventInfo: clGetEventInfo_t = "1.0";
    clRetainEvent: clRetainEvent_t = "1.0";
    clReleaseEvent: clReleaseEvent_t = "1.0";
    clGetEventProfilingInfo: clGetEventProfilingInfo_t = "1.0";
    clFlush: clFlush_t = "1.0";
    clFinish: clFinish_t = "1.0";
    clEnqueueReadBuffer: clEnqueueReadBuffer_t = "1.0";
    clEnqueueWriteBuffer: clEnqueueWriteBuffer_t = "1.0";
    clEnqueueCopyBuffer: clEnqueueCopyBuffer_t = "1.0";
    clEnqueueMapBuffer: clEnqueueMapBuffer_t = "1.0";
    clEnqueueUnmapMemObject: clEnqueueUnmapMemObject_t = "1.0";
    clEnqueueNDRangeKernel: clEnqueueNDRangeKernel_t = "1.0";
    clGetExtensionFunctionAddress: clGetExtensionFunctionAddress_t = "1.0";
    clCreateSubBuffer: clCreateSubBuffer_t = "1.1";
    clSetMemObjectDestructorCallback: clSetMemObjectDestructorCallback_t = "1.1";
    clCreateUserEvent: clCreateUserEvent_t = "1.1";
    clSetUserEventStatus: clSetUserEventStatus_t = "1.1";
    clSetEventCallback: clSetEventCallback_t = "1.1";
    clEnqueueReadBufferRect: clEnqueueReadBufferRect_t = "1.1";
    clEnqueueWriteBufferRect: clEnqueueWriteBufferRect_t = "1.1";
    clEnqueueCopyBufferRect: clEnqueueCopyBufferRect_t = "1.1";
    clGetKernelArgInfo: clGetKernelArgInfo_t = "1.2";
    clEnqueueFillBuffer: clEnqueueFillBuffer_t = "1.2";
    clEnqueueMigrateMemObjects: clEnqueueMigrateMemObjects_t = "1.2";
    clEnqueueMarkerWithWaitList: clEnqueueMarkerWithWaitList_t = "1.2";
    clEnqueueBarrierWithWaitList: clEnqueueBarrierWithWaitList_t = "1.2";
    clGetExtensionFunctionAddressForPlatform: clGetExtensionFunctionAddressForPlatform_t = "1.2";
    clSVMAlloc: clSVMAlloc_t = "2.0";
    clSVMFree: clSVMFree_t = "2.0";
    clEnqueueSVMFree: clEnqueueSVMFree_t = "2.0";
    clEnqueueSVMMemcpy: clEnqueueSVMMemcpy_t = "2.0";
    clEnqueueSVMMemFill: clEnqueueSVMMemFill_t = "2.0";
    clEnqueueSVMMap: clEnqueueSVMMap_t = "2.0";
    clEnqueueSVMUnmap: clEnqueueSVMUnmap_t = "2.0";
    clSetKernelArgSVMPointer: clSetKernelArgSVMPointer_t = "2.0";
    clSetKernelExecInfo: clSetKernelExecInfo_t = "2.0";
    clEnqueueSVMMigrateMem: clEnqueueSVMMigrateMem_t = "2.1";
    clCreateBufferWithProperties: clCreateBufferWithProperties_t = "3.0";
}

/// Takes a function out of a slot, or returns the error that names it.
macro_rules! slot {
    ($api:expr, $name:ident) => {
        $api.$name
            .ok_or_else(|| $crate::error::Error::missing(stringify!($name)))
    };
}
pub(crate) use slot;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_table_has_no_function_and_a_full_one_has_all() {
        assert_eq!(Api::EMPTY.present().count(), 0);
        let address = std::ptr::dangling_mut::<c_void>();
        // SAFETY: the addresses are never called.
        let full = unsafe { Api::from_symbols(|_| Some(address)) };
        assert!(full.present().eq(Api::SYMBOLS.iter().copied()));
    }

    #[test]
    fn a_null_address_leaves_the_slot_empty() {
        // SAFETY: no address is given.
        let table = unsafe { Api::from_symbols(|_| Some(std::ptr::null_mut())) };
        assert_eq!(table.present().count(), 0);
    }

    #[test]
    fn a_missing_function_is_reported_with_its_version() {
        let error = slot!(Api::EMPTY, clSVMAlloc).unwrap_err().to_string();
        assert!(
            error.contains("clSVMAlloc") && error.contains("2.0"),
            "{error}"
        );
    }
}
