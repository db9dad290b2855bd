//! An OpenCL kernel object.

use std::ffi::{CString, c_void};
use std::sync::atomic::AtomicBool;

use opencl_sys::{cl_bitfield, cl_int, cl_kernel, cl_kernel_arg_info, cl_mem, cl_uint};
use parking_lot::Mutex;

use super::arg::Arg;
use super::parameter::{Parameter, size_of_type};
use crate::api::{Api, slot};
use crate::error::{Error, Result, check};
use crate::handle::Handle;
use crate::program::Program;
use crate::query;

/// One `cl_kernel`; the lock is held while its arguments are set and it is enqueued.
pub(super) struct Object {
    pub raw: Handle,
    pub api: Api,
    pub launch: Mutex<()>,
    /// Whether it names the context's token; see [`foreign`](super::foreign).
    pub has_token: AtomicBool,
}

type GetArgInfo =
    unsafe extern "C" fn(cl_kernel, cl_uint, cl_kernel_arg_info, usize, *mut c_void, *mut usize) -> cl_int;

impl Object {
    pub fn create(program: &Program, name: &str) -> Result<Self> {
        let is_unknown = |error: &Error| error.code() == Some(opencl_sys::CL_INVALID_KERNEL_NAME);
        let mut created = Self::create_compiled(program, name);
        if created.as_ref().is_err_and(is_unknown)
            && let Some(compiled) = program.names().compiled(name)
        {
            created = Self::create_compiled(program, &compiled);
        }
        match created {
            Err(error) if is_unknown(&error) => Err(Error::NoKernel {
                name: name.to_owned(),
                have: program.kernel_names().unwrap_or_default().join(", "),
            }),
            other => other,
        }
    }

    /// The kernel that the driver calls `name`.
    fn create_compiled(program: &Program, name: &str) -> Result<Self> {
        let api = *program.context().api();
        let create = slot!(api, clCreateKernel)?;
        let text = CString::new(name).map_err(|_| Error::Nul {
            what: "the kernel's name",
        })?;
        let mut code = 0;
        // SAFETY: the program is alive and built; the name is a C string; `code` is a valid place.
        let raw = unsafe { create(program.raw(), text.as_ptr(), &raw mut code) };
        check(code, || format!("clCreateKernel(`{name}`)"))?;
        Ok(Self {
            raw: Handle(raw),
            api,
            launch: Mutex::new(()),
            has_token: AtomicBool::new(false),
        })
    }

    /// Reads what the compiler kept about each parameter.
    pub fn parameters(&self) -> Result<Vec<Parameter>> {
        let get = slot!(self.api, clGetKernelInfo)?;
        let mut count: cl_uint = 0;
        let what = opencl_sys::CL_KERNEL_NUM_ARGS;
        // SAFETY: the kernel is alive and `count` has room for the answer's `cl_uint`.
        let code = unsafe {
            get(
                self.raw.0,
                what,
                size_of::<cl_uint>(),
                (&raw mut count).cast(),
                std::ptr::null_mut(),
            )
        };
        check(code, || "clGetKernelInfo(CL_KERNEL_NUM_ARGS)".to_owned())?;
        Ok((0..count)
            .map(|index| self.parameter(index).unwrap_or(Parameter::Unknown))
            .collect())
    }

    fn parameter(&self, index: cl_uint) -> Option<Parameter> {
        let get = self.api.clGetKernelArgInfo?;
        let mut address: cl_uint = 0;
        let what = opencl_sys::CL_KERNEL_ARG_ADDRESS_QUALIFIER;
        // SAFETY: the kernel is alive and has this argument; `address` has room for the answer.
        let code = unsafe {
            get(
                self.raw.0,
                index,
                what,
                size_of::<cl_uint>(),
                (&raw mut address).cast(),
                std::ptr::null_mut(),
            )
        };
        if code != opencl_sys::CL_SUCCESS {
            return None;
        }
        match address {
            opencl_sys::CL_KERNEL_ARG_ADDRESS_GLOBAL => Some(Parameter::Pointer {
                constant: self.is_const(get, index),
            }),
            opencl_sys::CL_KERNEL_ARG_ADDRESS_CONSTANT => Some(Parameter::Pointer { constant: Some(true) }),
            opencl_sys::CL_KERNEL_ARG_ADDRESS_LOCAL => Some(Parameter::Local),
            opencl_sys::CL_KERNEL_ARG_ADDRESS_PRIVATE => {
                let what = opencl_sys::CL_KERNEL_ARG_TYPE_NAME;
                let name = query::text("clGetKernelArgInfo", what, |size, value, needed| {
                    // SAFETY: `value` is null with `size` zero, or has room for `size` bytes;
                    // `needed` is a valid place or null.
                    unsafe { get(self.raw.0, index, what, size, value, needed) }
                })
                .ok()?;
                Some(Parameter::Value(size_of_type(&name)))
            }
            _ => None,
        }
    }

    /// Whether what the parameter points at is declared `const`, if the compiler kept that.
    fn is_const(&self, get: GetArgInfo, index: cl_uint) -> Option<bool> {
        // `cl_kernel_arg_type_qualifier` is a 64-bit field; opencl-sys declares it with 32 bits.
        let mut qualifier: cl_bitfield = 0;
        // SAFETY: the kernel is alive and has this argument; `qualifier` has room for the answer.
        let code = unsafe {
            get(
                self.raw.0,
                index,
                opencl_sys::CL_KERNEL_ARG_TYPE_QUALIFIER,
                size_of::<cl_bitfield>(),
                (&raw mut qualifier).cast(),
                std::ptr::null_mut(),
            )
        };
        (code == opencl_sys::CL_SUCCESS)
            .then_some(qualifier & cl_bitfield::from(opencl_sys::CL_KERNEL_ARG_TYPE_CONST) != 0)
    }

    /// # Safety
    ///
    /// The object is locked; handles and pointers in `arg` are alive.
    pub unsafe fn set(&self, index: usize, arg: &Arg<'_>) -> Result<()> {
        let raw: cl_kernel = self.raw.0;
        let position = cl_uint::try_from(index).unwrap_or(cl_uint::MAX);
        let (call, code) = match *arg {
            Arg::Svm(pointer) => {
                let set = slot!(self.api, clSetKernelArgSVMPointer)?;
                // SAFETY: the caller's promise.
                ("clSetKernelArgSVMPointer", unsafe { set(raw, position, pointer) })
            }
            Arg::Mem(object) => {
                let set = slot!(self.api, clSetKernelArg)?;
                // SAFETY: the value is a buffer handle of the size given; OpenCL copies it.
                ("clSetKernelArg", unsafe {
                    set(raw, position, size_of::<cl_mem>(), (&raw const object).cast())
                })
            }
            Arg::Bytes(bytes) => {
                let set = slot!(self.api, clSetKernelArg)?;
                // SAFETY: the value has the size given; OpenCL copies it.
                ("clSetKernelArg", unsafe {
                    set(raw, position, bytes.len(), bytes.as_ptr().cast())
                })
            }
            Arg::Local(bytes) => {
                let set = slot!(self.api, clSetKernelArg)?;
                // SAFETY: local memory is given by a size and a null pointer.
                ("clSetKernelArg", unsafe { set(raw, position, bytes, std::ptr::null()) })
            }
        };
        check(code, || call.to_owned())
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some(release) = self.api.clReleaseKernel {
            // SAFETY: this is the one reference that the creation gave. OpenCL keeps the kernel
            // until the commands that use it have ended.
            unsafe { release(self.raw.0) };
        }
    }
}
