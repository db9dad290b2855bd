//! [`DeviceInfo`] as text for people.

use std::fmt::{self, Write as _};

use super::{DeviceInfo, FloatSupport};

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({}, {})", self.name, self.kind, self.vendor)?;
        let mut line = |name: &str, text: &str| writeln!(f, "  {name:<12} {text}");
        line(
            "version",
            &format!(
                "{}; {}; driver {}",
                self.version,
                self.language_version.as_deref().unwrap_or("language unknown"),
                self.driver_version
            ),
        )?;
        line(
            "platform",
            &format!("{}; {}", self.platform_name, self.platform_version),
        )?;
        line("identity", &self.identity())?;
        line("compute", &self.compute())?;
        line("work-groups", &self.work_groups())?;
        line("sub-groups", &self.sub_group_facts())?;
        for (name, support) in [("fp16", self.fp16), ("fp32", Some(self.fp32)), ("fp64", self.fp64)] {
            line(name, &support.unwrap_or(FloatSupport::empty()).to_string())?;
        }
        line("memory", &self.memory())?;
        line(
            "local memory",
            &format!(
                "{}, {}; constants up to {}",
                bytes(self.local_bytes),
                if self.local_is_dedicated {
                    "dedicated"
                } else {
                    "a part of the global memory"
                },
                bytes(self.max_constant_bytes)
            ),
        )?;
        line(
            "shared",
            &names(
                self.svm
                    .iter_names()
                    .map(|(name, _)| name.to_ascii_lowercase().replace('_', "-")),
            ),
        )?;
        line(
            "imports",
            &format!(
                "memory by {}; semaphores by {}",
                names(self.memory_imports.iter()),
                names(self.semaphore_imports.iter())
            ),
        )?;
        line(
            "exports",
            &format!("semaphores by {}", names(self.semaphore_exports.iter())),
        )?;
        line("extensions", &names(self.extensions.iter()))
    }
}

impl DeviceInfo {
    fn identity(&self) -> String {
        let pci = self.pci.map(|address| format!("PCI {address}"));
        let uuid = self.uuid.map(|uuid| format!("UUID {}", hyphenated(&uuid)));
        let driver = self.driver_uuid.map(|uuid| format!("driver {}", hyphenated(&uuid)));
        let luid = self.luid.map(|luid| format!("LUID {}", hex(&luid)));
        let vendor = Some(format!("vendor 0x{:04X}", self.vendor_id));
        joined([pci, uuid, driver, luid, vendor].into_iter().flatten())
    }

    fn compute(&self) -> String {
        joined(
            [
                Some(format!("{} units", self.compute_units)),
                // Intel's processors do not tell.
                (self.max_clock_mhz > 0).then(|| format!("up to {} MHz", self.max_clock_mhz)),
                Some(format!("{}-bit addresses", self.address_bits)),
                Some(format!("timer ticks of {} ns", self.timer_resolution_ns)),
            ]
            .into_iter()
            .flatten(),
        )
    }

    fn work_groups(&self) -> String {
        let sizes: Vec<String> = self.max_work_item_sizes.iter().map(usize::to_string).collect();
        let size = format!("up to {} ({})", self.max_work_group, sizes.join(" x "));
        let multiple = self
            .preferred_work_group_multiple
            .map(|multiple| format!("best in multiples of {multiple}"));
        let arguments = format!("{} bytes of arguments", self.max_parameter_bytes);
        joined([Some(size), multiple, Some(arguments)].into_iter().flatten())
    }

    fn sub_group_facts(&self) -> String {
        let Some(groups) = &self.sub_groups else {
            return "none".to_owned();
        };
        let most = format!("up to {} in a work-group", groups.max_per_work_group);
        let sizes = (!groups.sizes.is_empty()).then(|| format!("of {}", names(groups.sizes.iter())));
        let progress = if groups.independent_progress {
            "independent"
        } else {
            "not independent"
        };
        joined([Some(most), sizes, Some(progress.to_owned())].into_iter().flatten())
    }

    fn memory(&self) -> String {
        let unified = self.unified_memory.map(|unified| {
            if unified {
                "shared with the host"
            } else {
                "apart from the host's"
            }
            .to_owned()
        });
        joined(
            [
                Some(bytes(self.global_bytes)),
                self.free_bytes.map(|free| format!("{} of it free", bytes(free))),
                Some(format!("allocations up to {}", bytes(self.max_alloc_bytes))),
                Some(format!(
                    "sub-buffers at multiples of {}",
                    bytes(self.sub_buffer_alignment as u64)
                )),
                Some(format!(
                    "cache {} in lines of {}",
                    bytes(self.cache_bytes),
                    bytes(self.cache_line_bytes.into())
                )),
                unified,
                self.error_correction.then(|| "corrects errors".to_owned()),
            ]
            .into_iter()
            .flatten(),
        )
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join("; ")
}

/// The list with blanks, or that it is empty.
fn names<T: fmt::Display>(list: impl Iterator<Item = T>) -> String {
    let mut text = String::new();
    for name in list {
        let blank = if text.is_empty() { "" } else { " " };
        // Writing to a `String` does not fail.
        let _ = write!(text, "{blank}{name}");
    }
    if text.is_empty() { "none".to_owned() } else { text }
}

/// A size in the largest unit that it reaches.
fn bytes(count: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| count >> shift > 0) {
        Some((shift, unit)) if count.is_multiple_of(1 << shift) => {
            format!("{} {unit}", count >> shift)
        }
        #[allow(clippy::cast_precision_loss, reason = "shown with one digit behind the point")]
        Some((shift, unit)) => format!("{:.1} {unit}", count as f64 / (1u64 << shift) as f64),
        None => format!("{count} bytes"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// As UUIDs are written.
fn hyphenated(uuid: &[u8; 16]) -> String {
    let parts = [&uuid[..4], &uuid[4..6], &uuid[6..8], &uuid[8..10], &uuid[10..]];
    parts.map(hex).join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_their_largest_unit() {
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(64 << 10), "64 KiB");
        assert_eq!(bytes((3 << 30) / 2), "1.5 GiB");
        assert_eq!(bytes(u64::MAX), "17179869184.0 GiB");
    }

    #[test]
    fn identifiers_are_shown_as_other_tools_show_them() {
        let uuid: [u8; 16] = std::array::from_fn(|at| at as u8 * 17);
        assert_eq!(hyphenated(&uuid), "00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(names(std::iter::empty::<&str>()), "none");
    }
}
