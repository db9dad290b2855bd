//! One bridge per GPU.

use platform::Selection;

use super::open::Libraries;
use super::{Bridge, Options};
use crate::{Error, Result};

/// What [`Bridge::open_all`] found.
#[derive(Debug)]
pub struct Bridges {
    /// One for each HIP device that pairs with an OpenCL device, by ordinal; at least one.
    pub bridges: Vec<Bridge>,
    /// The HIP devices to which no bridge could be opened, and why.
    pub refused: Vec<(usize, Error)>,
}

impl Bridge {
    /// A bridge to every HIP device, each in its own context: with several devices in one, ROCm keeps shared memory on
    /// the host. They share one HIP runtime, so that [`peer`](Self::peer) can join any two, and share one
    /// [`Meter`](crate::Meter).
    ///
    /// Each HIP device is paired by its own PCI address. On the host platform all software devices are this machine's
    /// processor, and pair with its one OpenCL device; only the model then knows which memory belongs to which device.
    ///
    /// # Errors
    /// The first device's error, if no bridge can be opened. [`Options::hip_device`] and [`Options::opencl_device`] are
    /// not used.
    pub fn open_all(selection: &Selection, options: &Options) -> Result<Bridges> {
        let libraries = Libraries::load(selection)?;
        let options = Options {
            hip_device: None,
            opencl_device: None,
            ..options.clone()
        };
        let (mut bridges, mut refused) = (Vec::new(), Vec::new());
        // A machine without any yields device 0's error.
        for ordinal in 0..libraries.hip.device_count()?.max(1) {
            let opened = libraries
                .hip
                .device(ordinal)
                .map_err(Error::from)
                .and_then(|device| Self::open_on(&libraries, &device, &options));
            match opened {
                Ok(bridge) => bridges.push(bridge),
                Err(error) => refused.push((ordinal, error)),
            }
        }
        if bridges.is_empty() {
            return Err(refused.swap_remove(0).1);
        }
        Ok(Bridges { bridges, refused })
    }
}
