//! The kinds of shared virtual memory.

bitflags::bitflags! {
    /// The kinds of shared virtual memory that a device offers, as `CL_DEVICE_SVM_CAPABILITIES`
    /// reports them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct SvmCapabilities: u64 {
        /// `clSVMAlloc` memory that the host reaches by mapping it.
        const COARSE = opencl_sys::CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
        /// `clSVMAlloc` memory that host and device reach at any time.
        const FINE_BUFFER = opencl_sys::CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
        /// Any host memory.
        const FINE_SYSTEM = opencl_sys::CL_DEVICE_SVM_FINE_GRAIN_SYSTEM;
        /// Atomics between host and device.
        const ATOMICS = opencl_sys::CL_DEVICE_SVM_ATOMICS;
    }
}
