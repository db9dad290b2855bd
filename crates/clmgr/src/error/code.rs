//! OpenCL's codes: their names and what to do about them.

use opencl_sys::cl_int;

/// The remedy for a code of a call, to follow its name; empty where none is known.
pub(super) fn hint(call: &str, code: cl_int) -> &'static str {
    match code {
        // AMD's answer for memory that it cannot pin, a device's for example, however much is free.
        opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE if call.contains("CL_MEM_USE_HOST_PTR") => {
            "; the driver does not accept this memory as a buffer object"
        }
        opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE
        | opencl_sys::CL_OUT_OF_RESOURCES
        | opencl_sys::CL_OUT_OF_HOST_MEMORY => "; free memory or use smaller pieces",
        opencl_sys::CL_INVALID_WORK_GROUP_SIZE => "; use a smaller work-group, or let the driver choose",
        opencl_sys::CL_INVALID_BUFFER_SIZE => "; check the device's largest allocation",
        opencl_sys::CL_PROFILING_INFO_NOT_AVAILABLE => "; use a profiling queue and wait for the event",
        _ => "",
    }
}

/// The name of an OpenCL code, or `unknown code`.
#[must_use]
pub(super) fn code_name(code: cl_int) -> &'static str {
    macro_rules! names {
        ($($name:ident)*) => {
            match code {
                $(opencl_sys::$name => stringify!($name),)*
                -1001 => "CL_PLATFORM_NOT_FOUND_KHR",
                _ => "unknown code",
            }
        };
    }
    names! {
        CL_SUCCESS CL_DEVICE_NOT_FOUND CL_DEVICE_NOT_AVAILABLE CL_COMPILER_NOT_AVAILABLE
        CL_MEM_OBJECT_ALLOCATION_FAILURE CL_OUT_OF_RESOURCES CL_OUT_OF_HOST_MEMORY
        CL_PROFILING_INFO_NOT_AVAILABLE CL_MEM_COPY_OVERLAP CL_IMAGE_FORMAT_MISMATCH
        CL_IMAGE_FORMAT_NOT_SUPPORTED CL_BUILD_PROGRAM_FAILURE CL_MAP_FAILURE
        CL_MISALIGNED_SUB_BUFFER_OFFSET CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
        CL_COMPILE_PROGRAM_FAILURE CL_LINKER_NOT_AVAILABLE CL_LINK_PROGRAM_FAILURE
        CL_DEVICE_PARTITION_FAILED CL_KERNEL_ARG_INFO_NOT_AVAILABLE CL_INVALID_VALUE
        CL_INVALID_DEVICE_TYPE CL_INVALID_PLATFORM CL_INVALID_DEVICE CL_INVALID_CONTEXT
        CL_INVALID_QUEUE_PROPERTIES CL_INVALID_COMMAND_QUEUE CL_INVALID_HOST_PTR
        CL_INVALID_MEM_OBJECT CL_INVALID_IMAGE_FORMAT_DESCRIPTOR CL_INVALID_IMAGE_SIZE
        CL_INVALID_SAMPLER CL_INVALID_BINARY CL_INVALID_BUILD_OPTIONS CL_INVALID_PROGRAM
        CL_INVALID_PROGRAM_EXECUTABLE CL_INVALID_KERNEL_NAME CL_INVALID_KERNEL_DEFINITION
        CL_INVALID_KERNEL CL_INVALID_ARG_INDEX CL_INVALID_ARG_VALUE CL_INVALID_ARG_SIZE
        CL_INVALID_KERNEL_ARGS CL_INVALID_WORK_DIMENSION CL_INVALID_WORK_GROUP_SIZE
        CL_INVALID_WORK_ITEM_SIZE CL_INVALID_GLOBAL_OFFSET CL_INVALID_EVENT_WAIT_LIST
        CL_INVALID_EVENT CL_INVALID_OPERATION CL_INVALID_GL_OBJECT CL_INVALID_BUFFER_SIZE
        CL_INVALID_MIP_LEVEL CL_INVALID_GLOBAL_WORK_SIZE CL_INVALID_PROPERTY
        CL_INVALID_IMAGE_DESCRIPTOR CL_INVALID_COMPILER_OPTIONS CL_INVALID_LINKER_OPTIONS
        CL_INVALID_DEVICE_PARTITION_COUNT CL_INVALID_PIPE_SIZE CL_INVALID_DEVICE_QUEUE
        CL_INVALID_SPEC_ID CL_MAX_SIZE_RESTRICTION_EXCEEDED
    }
}
