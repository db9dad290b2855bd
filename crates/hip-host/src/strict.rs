//! `HIP_HOST_STRICT`: how much more than ROCm the model refuses.
//!
//! | level | what |
//! |---|---|
//! | 0 | what HIP's documentation calls an error and ROCm does all the same is done |
//! | 1 | it is refused; so is what is undefined |
//! | 2 | and device memory cannot be touched by the host |
//!
//! What level 2 means is in `memory::sealed`.

use std::sync::OnceLock;

use crate::log;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    AsRocm,
    Documented,
    Sealed,
}

fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| match std::env::var("HIP_HOST_STRICT").as_deref() {
        Ok("0") => Level::AsRocm,
        Ok("2") => Level::Sealed,
        Err(_) | Ok("1") => Level::Documented,
        Ok(other) => {
            log::warn(&format!("HIP_HOST_STRICT=`{other}` is not 0, 1 or 2: using level 1"));
            Level::Documented
        }
    })
}

/// Whether the model does what ROCm does against HIP's documentation.
pub(crate) fn is_off() -> bool {
    level() == Level::AsRocm
}

pub(crate) fn is_on() -> bool {
    level() == Level::Sealed
}
