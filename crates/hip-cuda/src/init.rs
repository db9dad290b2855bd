//! Starting HIP, and the versions that it reports.

use crate::error::{INVALID, calls, not_null, store};
use crate::{cuda, device};

/// The version of HIP whose ABI the tables have, in HIP's own way of counting: 6.4.3.
const ABI_VERSION: i32 = 60_443_484;

calls! {
    /// The start, and versions.
    pub(crate) fn fill;

    fn hipInit(flags: u32) {
        if flags != 0 {
            return Err(INVALID);
        }
        device::current().map(|_| ())
    }
    fn hipRuntimeGetVersion(out: *mut i32) {
        store(out, ABI_VERSION)
    }
    fn hipDriverGetVersion(out: *mut i32) {
        not_null!(out);
        cuda::cu()?.cuDriverGetVersion(out)
    }
}
