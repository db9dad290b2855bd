//! The structures of DLPack, version 1, as the specification lays them out.

use std::ffi::c_void;

/// The version that this crate writes, and the only major version that it reads.
pub const VERSION: Version = Version { major: 1, minor: 0 };

/// `DLPACK_FLAG_BITMASK_READ_ONLY`: the consumer must not write.
pub const READ_ONLY: u64 = 1;

/// `DLPackVersion`. Another major version is another layout.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Changes with the layout.
    pub major: u32,
    /// Changes with the enumerations.
    pub minor: u32,
}

/// `DLDeviceType`, an `int32_t`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceType(pub i32);

impl DeviceType {
    /// `kDLCPU`
    pub const CPU: Self = Self(1);
    /// `kDLCUDA`
    pub const CUDA: Self = Self(2);
    /// `kDLCUDAHost`
    pub const CUDA_HOST: Self = Self(3);
    /// `kDLROCM`
    pub const ROCM: Self = Self(10);
    /// `kDLROCMHost`
    pub const ROCM_HOST: Self = Self(11);
    /// `kDLExtDev`
    pub const EXT_DEV: Self = Self(12);
    /// `kDLCUDAManaged`
    pub const CUDA_MANAGED: Self = Self(13);
}

/// `DLDevice`
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// What kind of memory.
    pub device_type: DeviceType,
    /// Which device; 0 for memory of the host.
    pub device_id: i32,
}

/// `DLDataType`
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataType {
    /// `DLDataTypeCode`: 0 for signed integers, 1 unsigned, 2 floating point, 5 complex.
    pub code: u8,
    /// Bits of an element, both parts of a complex number.
    pub bits: u8,
    /// 1, except for vectors.
    pub lanes: u16,
}

/// `DLTensor`
#[repr(C)]
#[derive(Debug)]
pub struct Tensor {
    /// Where the memory begins; null if there are no elements.
    pub data: *mut c_void,
    /// Where it lies.
    pub device: Device,
    /// Entries of `shape` and `strides`.
    pub ndim: i32,
    /// Of the elements.
    pub dtype: DataType,
    /// Elements in each dimension.
    pub shape: *mut i64,
    /// Elements from one index to the next in each dimension.
    pub strides: *mut i64,
    /// From `data` to the first element.
    pub byte_offset: u64,
}

/// `DLManagedTensor`, the form without a version, which cannot be marked as read-only.
#[repr(C)]
#[derive(Debug)]
pub struct ManagedTensor {
    /// The tensor.
    pub dl_tensor: Tensor,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// The consumer calls it once, from any thread, when it is done.
    pub deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

/// `DLManagedTensorVersioned`
#[repr(C)]
#[derive(Debug)]
pub struct ManagedTensorVersioned {
    /// The version of the rest of the layout.
    pub version: Version,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// The consumer calls it once, from any thread, when it is done.
    pub deleter: Option<unsafe extern "C" fn(*mut ManagedTensorVersioned)>,
    /// [`READ_ONLY`] and others.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: Tensor,
}

/// Either form of a tensor with a deleter.
pub trait Form: sealed::Form {}

impl Form for ManagedTensor {}
impl Form for ManagedTensorVersioned {}

pub(super) mod sealed {
    use std::ffi::c_void;

    use super::{ManagedTensor, ManagedTensorVersioned, READ_ONLY, Tensor, VERSION};

    pub type Deleter<F> = unsafe extern "C" fn(*mut F);

    /// Public in name only: the crate does not export this module.
    pub trait Form: Sized {
        /// `None` if the form cannot say that it is read-only.
        fn new(tensor: Tensor, context: *mut c_void, deleter: Deleter<Self>, read_only: bool) -> Option<Self>;
        fn context(&self) -> *mut c_void;
        fn deleter(&self) -> Option<Deleter<Self>>;
        fn is_read_only(&self) -> bool;
        /// The tensor, or the major version that nothing is known of.
        ///
        /// # Safety
        /// `this` points to a living one; of an unknown version only what comes before the tensor.
        unsafe fn tensor<'a>(this: *const Self) -> Result<&'a Tensor, u32>;
    }

    impl Form for ManagedTensor {
        fn new(tensor: Tensor, context: *mut c_void, deleter: Deleter<Self>, read_only: bool) -> Option<Self> {
            (!read_only).then_some(Self {
                dl_tensor: tensor,
                manager_ctx: context,
                deleter: Some(deleter),
            })
        }

        fn context(&self) -> *mut c_void {
            self.manager_ctx
        }

        fn deleter(&self) -> Option<Deleter<Self>> {
            self.deleter
        }

        fn is_read_only(&self) -> bool {
            false
        }

        unsafe fn tensor<'a>(this: *const Self) -> Result<&'a Tensor, u32> {
            // SAFETY: the caller's promise.
            Ok(unsafe { &(*this).dl_tensor })
        }
    }

    impl Form for ManagedTensorVersioned {
        fn new(tensor: Tensor, context: *mut c_void, deleter: Deleter<Self>, read_only: bool) -> Option<Self> {
            Some(Self {
                version: VERSION,
                manager_ctx: context,
                deleter: Some(deleter),
                flags: if read_only { READ_ONLY } else { 0 },
                dl_tensor: tensor,
            })
        }

        fn context(&self) -> *mut c_void {
            self.manager_ctx
        }

        fn deleter(&self) -> Option<Deleter<Self>> {
            self.deleter
        }

        fn is_read_only(&self) -> bool {
            self.flags & READ_ONLY != 0
        }

        unsafe fn tensor<'a>(this: *const Self) -> Result<&'a Tensor, u32> {
            // SAFETY: the version is the first field of every version.
            let version = unsafe { (*this).version };
            match version.major == VERSION.major {
                // SAFETY: the caller's promise, of a version that is known.
                true => Ok(unsafe { &(*this).dl_tensor }),
                false => Err(version.major),
            }
        }
    }
}
