//! Memory that both APIs see, on a bridge that the program already has.

use interop::{Bridge, Result, Route, Shared};

/// Uploads once; afterwards OpenCL and HIP work on the same bytes.
///
/// # Errors
/// The bridge could not allocate or copy.
pub fn share(bridge: &Bridge, samples: &[f32]) -> Result<(Shared<f32>, Route)> {
    let mut shared = bridge.alloc(samples.len())?;
    shared.upload(samples)?;
    Ok((shared, bridge.route()))
}
