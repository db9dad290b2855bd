//! What floating-point arithmetic can do.

use std::fmt;

bitflags::bitflags! {
    /// The bits of `CL_DEVICE_SINGLE_FP_CONFIG` and its siblings for other precisions.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct FloatSupport: u64 {
        /// Denormal numbers.
        const DENORM = opencl_sys::CL_FP_DENORM;
        /// Infinity and quiet NaNs.
        const INF_NAN = opencl_sys::CL_FP_INF_NAN;
        /// Rounding to the nearest even number.
        const ROUND_TO_NEAREST = opencl_sys::CL_FP_ROUND_TO_NEAREST;
        /// Rounding to zero.
        const ROUND_TO_ZERO = opencl_sys::CL_FP_ROUND_TO_ZERO;
        /// Rounding to both infinities.
        const ROUND_TO_INF = opencl_sys::CL_FP_ROUND_TO_INF;
        /// Fused multiply-add.
        const FMA = opencl_sys::CL_FP_FMA;
        /// Made of integer instructions.
        const SOFT_FLOAT = opencl_sys::CL_FP_SOFT_FLOAT;
        /// Division and square root as IEEE 754 rounds them.
        const CORRECTLY_ROUNDED_DIVIDE_SQRT = opencl_sys::CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    }
}

impl fmt::Display for FloatSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no");
        }
        let mut before = "";
        for (name, _) in self.iter_names() {
            write!(f, "{before}{}", name.to_ascii_lowercase().replace('_', "-"))?;
            before = " ";
        }
        Ok(())
    }
}
