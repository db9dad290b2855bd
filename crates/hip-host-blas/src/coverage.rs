//! Which functions are built, and how far.

use hip_host::coverage::Coverage;

/// Lists each function that ROCm 6.4 declares, with the slot that has its form of that release.
macro_rules! slots {
    ($(fn $name:ident($($argument:ident: $ty:ty),* $(,)?) $(-> $result:ty)? = $slot:ident;)*) => {
        &[$((stringify!($name), stringify!($slot))),*]
    };
}

type Slots = &'static [(&'static str, &'static str)];

const ROCBLAS: Slots = rocblas_sys::for_each_function!(slots);
const ROCSOLVER: Slots = rocsolver_sys::for_each_function!(slots);

/// All names of a table with the coverage of each. What is built, is built as a whole.
fn of(slots: Slots, present: Vec<&'static str>) -> Vec<(&'static str, Coverage)> {
    let coverage = |slot| match present.contains(&slot) {
        true => Coverage::Done,
        false => Coverage::Absent,
    };
    slots.iter().map(|(name, slot)| (*name, coverage(*slot))).collect()
}

/// rocBLAS' functions.
#[must_use]
pub fn rocblas() -> Vec<(&'static str, Coverage)> {
    of(ROCBLAS, crate::rocblas_api().present().collect())
}

/// rocSOLVER's functions.
#[must_use]
pub fn rocsolver() -> Vec<(&'static str, Coverage)> {
    of(ROCSOLVER, crate::rocsolver_api().present().collect())
}
