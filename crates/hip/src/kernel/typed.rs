use std::fmt;
use std::marker::PhantomData;

use bytemuck::Pod;
use num_complex::Complex;

use super::{Function, KernelArg};
use crate::{DeviceSlice, DeviceSliceMut, LaunchConfig, Result, Stream};

/// A kernel whose parameter list is known to the compiler, from [`Function::typed`].
///
/// ```
/// # use std::sync::Arc;
/// # // SAFETY: both tables come from one platform.
/// # let runtime = unsafe {
/// #     hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), Some(Arc::new(hip_host::rtc_api())))
/// # }?;
/// # let device = runtime.device(0)?;
/// # let stream = device.stream()?;
/// use hip::param::{In, InOut};
/// let source = r#"extern "C" __global__ void add(float *y, const float *x, float a, unsigned n) {
///     unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
///     if (i < n) y[i] += a * x[i];
/// }"#;
/// let function = hip::rtc::Program::new(source).compile(&device)?.function("add")?;
/// // SAFETY: these are the parameters of `add`.
/// let add = unsafe { function.typed::<(InOut<f32>, In<f32>, f32, u32)>() };
/// let (x, mut y) = (device.alloc_from(&stream, &[1.0_f32; 5])?, device.alloc_zeroed::<f32>(5)?);
/// let config = hip::LaunchConfig::linear(5, 64)?;
/// // SAFETY: `add` stays below `n` and ends.
/// unsafe { add.launch(&stream, config, (y.on_mut(&stream)?, x.on(&stream)?, 3.0, 5))? };
/// let mut seen = [0.0; 5];
/// y.copy_to_slice(&stream, &mut seen)?;
/// assert_eq!(seen, [3.0; 5]);
/// # Ok::<(), hip::Error>(())
/// ```
///
/// An argument of another type, or one too few, does not compile:
///
/// ```compile_fail,E0308
/// use hip::param::InOut;
/// unsafe fn wrong(kernel: &hip::Kernel<(InOut<f32>, u32)>, stream: &hip::Stream, mut y: hip::DeviceBuffer<f32>) {
///     let config = hip::LaunchConfig::linear(1, 1).unwrap();
///     let _ = unsafe { kernel.launch(stream, config, (y.on_mut(stream).unwrap(), 1_i64)) };
/// }
/// ```
///
/// ```compile_fail,E0308
/// use hip::param::InOut;
/// unsafe fn short(kernel: &hip::Kernel<(InOut<f32>, u32)>, stream: &hip::Stream, mut y: hip::DeviceBuffer<f32>) {
///     let config = hip::LaunchConfig::linear(1, 1).unwrap();
///     let _ = unsafe { kernel.launch(stream, config, (y.on_mut(stream).unwrap(),)) };
/// }
/// ```
///
/// Read-only memory is not an argument for a parameter that the kernel writes:
///
/// ```compile_fail,E0308
/// use hip::param::InOut;
/// unsafe fn readonly(kernel: &hip::Kernel<(InOut<f32>,)>, stream: &hip::Stream, y: &hip::DeviceBuffer<f32>) {
///     let config = hip::LaunchConfig::linear(1, 1).unwrap();
///     let _ = unsafe { kernel.launch(stream, config, (y.on(stream).unwrap(),)) };
/// }
/// ```
pub struct Kernel<P> {
    function: Function,
    params: PhantomData<fn(P)>,
}

/// The types that represent a kernel's parameters in the type of a [`Kernel`].
pub mod param {
    use std::marker::PhantomData;

    /// A `const T *` that the kernel only reads; its argument is a [`DeviceSlice`](crate::DeviceSlice).
    #[derive(Debug)]
    pub struct In<T>(PhantomData<T>);

    /// A `T *`; its argument is a [`DeviceSliceMut`](crate::DeviceSliceMut).
    #[derive(Debug)]
    pub struct InOut<T>(PhantomData<T>);
}

/// A structure as an argument by value: `#[repr(C)]`, without padding, the same as the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct ByValue<T>(pub T);

// SAFETY: the parameter is this structure, and `self` is one: `repr(transparent)`, and plain data has the layout of C.
unsafe impl<T: Pod> KernelArg for ByValue<T> {
    fn as_param(&self) -> *mut std::ffi::c_void {
        (&raw const self.0).cast_mut().cast()
    }
}

/// The type of one parameter.
pub trait Param {
    /// What is passed for it.
    type Arg<'a>: KernelArg;
}

impl<T: Pod> Param for param::In<T> {
    type Arg<'a> = DeviceSlice<'a, T>;
}

impl<T: Pod> Param for param::InOut<T> {
    type Arg<'a> = DeviceSliceMut<'a, T>;
}

impl<T: Pod> Param for ByValue<T> {
    type Arg<'a> = Self;
}

macro_rules! by_value {
    ($($scalar:ty),*) => {$(
        impl Param for $scalar {
            type Arg<'a> = Self;
        }
    )*};
}

by_value!(
    i8,
    u8,
    i16,
    u16,
    i32,
    u32,
    i64,
    u64,
    f32,
    f64,
    Complex<f32>,
    Complex<f64>
);

/// A parameter list: a tuple of up to sixteen [`Param`]s.
pub trait Params {
    /// The arguments, a tuple of the same length.
    type Args<'a>;

    /// Launches `function` with these arguments.
    ///
    /// # Safety
    ///
    /// As [`Function::launch`].
    #[doc(hidden)]
    unsafe fn launch(function: &Function, stream: &Stream, config: LaunchConfig, args: &Self::Args<'_>) -> Result<()>;
}

macro_rules! params {
    ($($param:ident $position:tt),*) => {
        impl<$($param: Param),*> Params for ($($param,)*) {
            type Args<'a> = ($($param::Arg<'a>,)*);

            unsafe fn launch(
                function: &Function,
                stream: &Stream,
                config: LaunchConfig,
                args: &Self::Args<'_>,
            ) -> Result<()> {
                let list: &[&dyn KernelArg] = &[$(&args.$position),*];
                // SAFETY: the caller's promise is the callee's demand.
                unsafe { function.launch(stream, config, list) }
            }
        }
    };
}

params!(A 0);
params!(A 0, B 1);
params!(A 0, B 1, C 2);
params!(A 0, B 1, C 2, D 3);
params!(A 0, B 1, C 2, D 3, E 4);
params!(A 0, B 1, C 2, D 3, E 4, F 5);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, Q 15);

impl Function {
    /// The same kernel with its parameter list as a type: number and types of the arguments are then checked when the
    /// program is compiled.
    ///
    /// # Safety
    ///
    /// `P` is the kernel's parameter list: [`param::In`] for a pointer it only reads, [`param::InOut`] for one it
    /// writes, scalars and [`ByValue`] for the rest.
    #[must_use]
    pub unsafe fn typed<P: Params>(&self) -> Kernel<P> {
        Kernel {
            function: self.clone(),
            params: PhantomData,
        }
    }
}

impl<P: Params> Kernel<P> {
    /// Queues the kernel on `stream`. The host does not wait.
    ///
    /// # Safety
    ///
    /// The kernel stays inside the slices, writes no memory that another argument shows, was written for this block
    /// size and shared memory, and ends.
    ///
    /// # Errors
    ///
    /// As [`Function::launch`].
    #[doc(alias = "hipModuleLaunchKernel")]
    pub unsafe fn launch(&self, stream: &Stream, config: LaunchConfig, args: P::Args<'_>) -> Result<()> {
        // SAFETY: number, order and types are those `typed` was promised; the caller vouches for the rest.
        unsafe { P::launch(&self.function, stream, config, &args) }
    }

    /// The kernel without its parameter list.
    #[must_use]
    pub fn function(&self) -> &Function {
        &self.function
    }
}

impl<P> Clone for Kernel<P> {
    fn clone(&self) -> Self {
        Self {
            function: self.function.clone(),
            params: PhantomData,
        }
    }
}

impl<P> fmt::Debug for Kernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kernel").field(&self.function).finish()
    }
}
