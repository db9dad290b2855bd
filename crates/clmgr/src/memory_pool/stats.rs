//! A pool's statistics.

use std::fmt;

/// The counts and sizes of a [`MemoryPool`](super::MemoryPool), all in bytes or events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PoolStats {
    /// Requests that a held block served.
    pub hits: u64,
    /// Hits on a block that another queue still used, for which the new queue waits.
    pub waits: u64,
    /// Requests that needed new memory.
    pub misses: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Times that blocks were freed because the device was out of memory.
    pub out_of_memory: u64,
    /// Blocks returned to OpenCL.
    pub freed: u64,
    /// Bytes lent now, as requested.
    pub asked_bytes: usize,
    /// Bytes lent now, by block size.
    pub lent_bytes: usize,
    /// Bytes held now for later.
    pub held_bytes: usize,
    /// The peak of bytes lent and held together.
    pub peak_bytes: usize,
}

impl PoolStats {
    /// The fraction of the lent bytes that no caller requested, 0 to 1.
    #[must_use]
    pub fn waste(&self) -> f64 {
        if self.lent_bytes == 0 {
            return 0.0;
        }
        (self.lent_bytes - self.asked_bytes) as f64 / self.lent_bytes as f64
    }

    pub(super) fn note_peak(&mut self) {
        self.peak_bytes = self.peak_bytes.max(self.lent_bytes + self.held_bytes);
    }
}

impl fmt::Display for PoolStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = self.hits + self.misses + self.failures;
        write!(
            f,
            "{requests} requests: {} hits ({} waited), {} misses, {} failed; ",
            self.hits, self.waits, self.misses, self.failures
        )?;
        write!(
            f,
            "lent {} ({:.1} % waste), held {}, peak {}; freed {} blocks, out of memory {} times",
            Bytes(self.lent_bytes),
            self.waste() * 100.0,
            Bytes(self.held_bytes),
            Bytes(self.peak_bytes),
            self.freed,
            self.out_of_memory
        )
    }
}

struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < units.len() {
            value /= 1024.0;
            unit += 1;
        }
        if unit == 0 {
            write!(f, "{} B", self.0)
        } else {
            write!(f, "{value:.1} {}", units[unit])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_one_readable_line() {
        let stats = PoolStats {
            hits: 3,
            misses: 1,
            asked_bytes: 900,
            lent_bytes: 1000,
            held_bytes: 3 << 20,
            peak_bytes: 5 << 30,
            ..PoolStats::default()
        };
        let text = stats.to_string();
        for part in [
            "4 requests",
            "3 hits",
            "lent 1000 B (10.0 % waste)",
            "held 3.0 MiB",
            "peak 5.0 GiB",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains('\n'));
    }
}
