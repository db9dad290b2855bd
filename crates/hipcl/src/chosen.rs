//! What `-v` says of a run before it begins: what was chosen, and why.

use interop::Bridge;
use platform::{LibraryState, Selection};
use tracing::{debug, info};

use crate::error::one_line;

/// The platform with its libraries, the pair of devices and each route, as events.
pub(crate) fn tell(selection: &Selection, bridge: &Bridge) {
    let report = bridge.report();
    info!("platform {} ({})", report.platform, one_line(&selection.why));
    for library in &selection.libraries {
        match &library.state {
            LibraryState::Missing(why) => info!("no {}: {}", library.name, one_line(why)),
            LibraryState::Loaded(file) => debug!("{} from {}", library.name, file.display()),
            _ => debug!("{} built in", library.name),
        }
    }
    info!(
        "{} (OpenCL) is {} (HIP): {}",
        report.opencl_device, report.hip_device, report.pairing
    );
    debug!("OpenCL from {}", report.opencl_library.display());
    for (device, why) in &report.passed_over {
        info!("OpenCL device {device} is not used: {}", one_line(why));
    }
    for route in &report.routes {
        match &route.outcome {
            Ok(residency) => info!("route {} works, memory {residency}", route.route),
            Err(why) => info!("route {} is not used: {}", route.route, one_line(why)),
        }
    }
}
