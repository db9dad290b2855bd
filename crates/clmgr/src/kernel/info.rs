//! What a compiled kernel takes and needs.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::fmt;

use opencl_sys::{cl_bitfield, cl_uint, cl_ulong};

use super::Kernel;
use super::object::Object;
use super::parameter::size_of_type;
use crate::api::slot;
use crate::error::{Result, check};
use crate::program::Program;
use crate::query;

/// What a kernel takes and needs, as the driver reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelInfo {
    /// The kernel's name in the source.
    pub name: String,
    /// Its parameters, in order.
    pub parameters: Vec<ParameterInfo>,
    /// The work-group size that `reqd_work_group_size` demands.
    pub required_work_group: Option<[usize; 3]>,
    /// The largest number of work-items in a work-group.
    pub max_work_group: usize,
    /// The number that the work-items of a work-group should be a multiple of.
    pub preferred_multiple: usize,
    /// Bytes of local memory for each work-group, without `local` pointer arguments. Newer releases of PoCL compile a
    /// kernel when it is launched and report 0.
    pub local_bytes: u64,
    /// Bytes of private memory for each work-item, at least.
    pub private_bytes: u64,
}

/// One parameter of a kernel. The compiler need not keep what is `None`; a program that was loaded as
/// a binary often has nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParameterInfo {
    /// Its name in the source.
    pub name: Option<String>,
    /// Its type in the source, e.g. `float2*`, without qualifiers.
    pub type_name: Option<String>,
    /// The address space it points to.
    pub address_space: Option<AddressSpace>,
    /// Whether what it points to is declared `const` or `constant`.
    pub is_const: Option<bool>,
    /// The bytes of a value of a built-in OpenCL C type.
    pub size: Option<usize>,
    /// An object other than a buffer that it takes.
    pub object: Option<ObjectKind>,
}

/// An address space of OpenCL C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressSpace {
    /// Memory of the device.
    Global,
    /// Memory of the device that a kernel only reads.
    Constant,
    /// Memory of one work-group.
    Local,
    /// A value.
    Private,
}

/// What a kernel parameter takes besides buffers, values and local memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ObjectKind {
    /// An image, e.g. `image2d_t`.
    Image,
    /// `sampler_t`.
    Sampler,
    /// A pipe.
    Pipe,
    /// A queue that the kernel enqueues to, `queue_t`.
    Queue,
}

impl fmt::Display for AddressSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Constant => "constant",
            Self::Local => "local",
            Self::Private => "private",
        })
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Image => "an image",
            Self::Sampler => "a sampler",
            Self::Pipe => "a pipe",
            Self::Queue => "a device queue",
        })
    }
}

impl KernelInfo {
    /// The kinds of objects that it takes besides buffers.
    #[must_use]
    pub fn objects(&self) -> BTreeSet<ObjectKind> {
        self.parameters.iter().filter_map(|it| it.object).collect()
    }
}

impl Program {
    /// The same program, with kernels that report their parameters: this one, or, if the cached binary it was loaded
    /// from lacks that, one built from the source.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build) and [`Kernel::info`].
    pub fn with_parameters(&self) -> Result<Self> {
        let Some((source, options)) = self.unread() else {
            return Ok(self.clone());
        };
        for name in self.kernel_names()? {
            let parameters = self.kernel(&name)?.info()?.parameters;
            if parameters.iter().any(|it| it.address_space.is_none()) {
                return Self::build(self.context(), source, options);
            }
        }
        Ok(self.clone())
    }
}

impl Kernel {
    /// What it takes and needs.
    ///
    /// # Errors
    ///
    /// An error from `clGetKernelWorkGroupInfo`. It is not an error if the compiler kept nothing about a parameter.
    #[doc(alias = "clGetKernelArgInfo")]
    #[doc(alias = "clGetKernelWorkGroupInfo")]
    pub fn info(&self) -> Result<KernelInfo> {
        let object = Object::create(&self.0.program, &self.0.name)?;
        let device = self.0.program.context().device().raw();
        let ask = WorkGroup {
            object: &object,
            device,
        };
        let required: [usize; 3] = ask.value(opencl_sys::CL_KERNEL_COMPILE_WORK_GROUP_SIZE)?;
        Ok(KernelInfo {
            name: self.0.name.clone(),
            parameters: (0..self.arg_count())
                .map(|index| object.describe(index as cl_uint))
                .collect(),
            required_work_group: (required != [0; 3]).then_some(required),
            max_work_group: ask.value(opencl_sys::CL_KERNEL_WORK_GROUP_SIZE)?,
            preferred_multiple: ask.value(opencl_sys::CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE)?,
            local_bytes: ask.value::<cl_ulong>(opencl_sys::CL_KERNEL_LOCAL_MEM_SIZE)?,
            private_bytes: ask.value::<cl_ulong>(opencl_sys::CL_KERNEL_PRIVATE_MEM_SIZE)?,
        })
    }
}

/// Queries of a kernel on its device.
struct WorkGroup<'a> {
    object: &'a Object,
    device: opencl_sys::cl_device_id,
}

impl WorkGroup<'_> {
    fn value<T: bytemuck::Pod>(&self, what: cl_uint) -> Result<T> {
        let get = slot!(self.object.api, clGetKernelWorkGroupInfo)?;
        let mut value = T::zeroed();
        // SAFETY: the kernel is alive and built for the device; `value` has room for the answer.
        let code = unsafe {
            get(
                self.object.raw.0,
                self.device,
                what,
                size_of::<T>(),
                (&raw mut value).cast(),
                std::ptr::null_mut(),
            )
        };
        check(code, || format!("clGetKernelWorkGroupInfo(0x{what:04X})"))?;
        Ok(value)
    }
}

impl Object {
    fn describe(&self, index: cl_uint) -> ParameterInfo {
        let type_name = self.argument_text(index, opencl_sys::CL_KERNEL_ARG_TYPE_NAME);
        let space: Option<cl_uint> = self.argument(index, opencl_sys::CL_KERNEL_ARG_ADDRESS_QUALIFIER);
        let address_space = match space {
            Some(opencl_sys::CL_KERNEL_ARG_ADDRESS_GLOBAL) => Some(AddressSpace::Global),
            Some(opencl_sys::CL_KERNEL_ARG_ADDRESS_CONSTANT) => Some(AddressSpace::Constant),
            Some(opencl_sys::CL_KERNEL_ARG_ADDRESS_LOCAL) => Some(AddressSpace::Local),
            Some(opencl_sys::CL_KERNEL_ARG_ADDRESS_PRIVATE) => Some(AddressSpace::Private),
            _ => None,
        };
        // A 64-bit field; opencl-sys declares it with 32 bits.
        let qualifiers: Option<cl_bitfield> = self.argument(index, opencl_sys::CL_KERNEL_ARG_TYPE_QUALIFIER);
        let has = |bit: cl_uint| qualifiers.map(|all| all & cl_bitfield::from(bit) != 0);
        let is_pipe = has(opencl_sys::CL_KERNEL_ARG_TYPE_PIPE as cl_uint) == Some(true);
        let is_value = address_space == Some(AddressSpace::Private);
        ParameterInfo {
            name: self.argument_text(index, opencl_sys::CL_KERNEL_ARG_NAME),
            is_const: match address_space {
                Some(AddressSpace::Constant) => Some(true),
                _ => has(opencl_sys::CL_KERNEL_ARG_TYPE_CONST as cl_uint),
            },
            size: type_name.as_deref().filter(|_| is_value).and_then(size_of_type),
            object: match is_pipe {
                true => Some(ObjectKind::Pipe),
                false => type_name.as_deref().and_then(object_of_type),
            },
            type_name,
            address_space,
        }
    }

    /// `None` where the compiler kept nothing.
    fn argument<T: bytemuck::Pod>(&self, index: cl_uint, what: cl_uint) -> Option<T> {
        let get = self.api.clGetKernelArgInfo?;
        let mut value = T::zeroed();
        // SAFETY: the kernel is alive and has this argument; `value` has room for the answer.
        let code = unsafe {
            get(
                self.raw.0,
                index,
                what,
                size_of::<T>(),
                (&raw mut value).cast(),
                std::ptr::null_mut(),
            )
        };
        (code == opencl_sys::CL_SUCCESS).then_some(value)
    }

    fn argument_text(&self, index: cl_uint, what: cl_uint) -> Option<String> {
        let get = self.api.clGetKernelArgInfo?;
        let ask = |size, value: *mut c_void, needed| {
            // SAFETY: the kernel is alive and has this argument; `value` is null with `size` zero,
            // or has room for `size` bytes; `needed` is a valid place or null.
            unsafe { get(self.raw.0, index, what, size, value, needed) }
        };
        let text = query::text("clGetKernelArgInfo", what, ask).ok()?;
        (!text.is_empty()).then_some(text)
    }
}

/// Which object a parameter of this type takes, if it is not a buffer.
fn object_of_type(name: &str) -> Option<ObjectKind> {
    let word = name.rsplit(' ').next().unwrap_or(name);
    match word {
        "sampler_t" => Some(ObjectKind::Sampler),
        "queue_t" => Some(ObjectKind::Queue),
        _ if word.starts_with("image") && word.ends_with("_t") => Some(ObjectKind::Image),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_objects_are_told_from_values() {
        for (name, object) in [
            ("image2d_t", Some(ObjectKind::Image)),
            ("read_only image2d_array_t", Some(ObjectKind::Image)),
            ("image3d_t", Some(ObjectKind::Image)),
            ("sampler_t", Some(ObjectKind::Sampler)),
            ("queue_t", Some(ObjectKind::Queue)),
            ("float*", None),
            ("image_size", None),
            ("size_t", None),
        ] {
            assert_eq!(object_of_type(name), object, "{name}");
        }
    }
}
