//! Which kind of memory a [`BufferFactory`](super::BufferFactory) chooses, and why.

use std::fmt;

use crate::buffer::SvmGrain;
use crate::context::Context;
use crate::device::DeviceKind;
use crate::error::{Error, Result};

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferStrategy {
    /// [`RegularBuffer`](crate::RegularBuffer).
    Regular,
    /// A coarse-grained [`SvmBuffer`](crate::SvmBuffer).
    SvmCoarse,
    /// A fine-grained [`SvmBuffer`](crate::SvmBuffer).
    SvmFine,
    /// A system-grained [`SvmBuffer`](crate::SvmBuffer): the host's own memory.
    SvmSystem,
    /// [`HostPtrBuffer`](crate::HostPtrBuffer).
    HostPtr,
    /// [`ExternalBuffer`](crate::ExternalBuffer); only by
    /// [`BufferFactory::adopt`](crate::BufferFactory::adopt).
    External,
}

impl BufferStrategy {
    /// The grain, if it is shared virtual memory.
    pub(super) fn grain(self) -> Option<SvmGrain> {
        match self {
            Self::SvmCoarse => Some(SvmGrain::Coarse),
            Self::SvmFine => Some(SvmGrain::Fine),
            Self::SvmSystem => Some(SvmGrain::System),
            Self::Regular | Self::HostPtr | Self::External => None,
        }
    }
}

impl fmt::Display for BufferStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Regular => "regular",
            Self::SvmCoarse => "svm-coarse",
            Self::SvmFine => "svm-fine",
            Self::SvmSystem => "svm-system",
            Self::HostPtr => "host-ptr",
            Self::External => "external",
        })
    }
}

/// A kind of memory and the sizes it is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferRule {
    /// The kind.
    pub strategy: BufferStrategy,
    /// The smallest size, in bytes.
    pub min_bytes: usize,
    /// The largest size, in bytes.
    pub max_bytes: usize,
}

impl BufferRule {
    /// This kind for every size.
    #[must_use]
    pub const fn any_size(strategy: BufferStrategy) -> Self {
        Self {
            strategy,
            min_bytes: 0,
            max_bytes: usize::MAX,
        }
    }

    /// The same kind for sizes of at least `bytes` bytes.
    #[must_use]
    pub const fn at_least(mut self, bytes: usize) -> Self {
        self.min_bytes = bytes;
        self
    }

    /// The same kind for sizes of at most `bytes` bytes.
    #[must_use]
    pub const fn at_most(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Why memory of this size on this device cannot be of this kind, if it cannot.
    fn objection(&self, context: &Context, bytes: usize) -> Option<String> {
        let device = context.device();
        if bytes < self.min_bytes {
            return Some(format!("from {} bytes on", self.min_bytes));
        }
        if bytes > self.max_bytes {
            return Some(format!("up to {} bytes", self.max_bytes));
        }
        match self.strategy {
            BufferStrategy::External => return Some("only adopted".to_owned()),
            // The host's allocator sets its limit.
            BufferStrategy::SvmSystem => {}
            _ if bytes as u64 > device.max_alloc_bytes() => {
                return Some(format!(
                    "the device's largest allocation is {} bytes",
                    device.max_alloc_bytes()
                ));
            }
            _ => {}
        }
        let grain = self.strategy.grain()?;
        (!grain.is_offered(device)).then(|| "the device has none".to_owned())
    }
}

/// The rules of a [`BufferFactory`](crate::BufferFactory): kinds of memory in the order of
/// preference, each with its sizes. It chooses the first one that the device has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferPolicy {
    name: String,
    rules: Vec<BufferRule>,
}

impl BufferPolicy {
    /// The names that [`preset`](Self::preset) knows.
    pub const PRESETS: [&'static str; 3] = ["kernels", "host-access", "any-device"];

    /// Custom rules, under a name that explanations use.
    #[must_use]
    pub fn new(name: impl Into<String>, rules: impl IntoIterator<Item = BufferRule>) -> Self {
        Self {
            name: name.into(),
            rules: rules.into_iter().collect(),
        }
    }

    /// `kernels`: memory that kernels reach fastest. Coarse-grained shared virtual memory, whose
    /// address other APIs can use; else a regular buffer.
    #[must_use]
    pub fn for_kernels() -> Self {
        Self::in_order("kernels", &[BufferStrategy::SvmCoarse, BufferStrategy::Regular])
    }

    /// `host-access`: memory that the host maps without a copy. Fine-grained shared virtual memory,
    /// else the host's memory used in place. On a discrete GPU kernels reach either over the bus.
    #[must_use]
    pub fn for_host_access() -> Self {
        Self::in_order("host-access", &[BufferStrategy::SvmFine, BufferStrategy::HostPtr])
    }

    /// `any-device`: regular buffers, which every device has.
    #[must_use]
    pub fn for_any_device() -> Self {
        Self::in_order("any-device", &[BufferStrategy::Regular])
    }

    /// Regular buffers below `bytes` bytes, and `strategy` from there on.
    #[must_use]
    pub fn by_size(bytes: usize, strategy: BufferStrategy) -> Self {
        let small = bytes
            .checked_sub(1)
            .map(|most| BufferRule::any_size(BufferStrategy::Regular).at_most(most));
        let large = BufferRule::any_size(strategy).at_least(bytes);
        Self::new("by-size", small.into_iter().chain([large]))
    }

    /// The preset of this name, one of [`PRESETS`](Self::PRESETS).
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "kernels" => Some(Self::for_kernels()),
            "host-access" => Some(Self::for_host_access()),
            "any-device" => Some(Self::for_any_device()),
            _ => None,
        }
    }

    fn in_order(name: &str, strategies: &[BufferStrategy]) -> Self {
        Self::new(name, strategies.iter().copied().map(BufferRule::any_size))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rules, in the order of preference.
    #[must_use]
    pub fn rules(&self) -> &[BufferRule] {
        &self.rules
    }

    /// The first kind that serves this size on the context's device.
    pub(super) fn choose(&self, context: &Context, bytes: usize) -> Result<BufferChoice> {
        let device = context.device();
        let mut passed_over = String::new();
        for rule in &self.rules {
            let Some(objection) = rule.objection(context, bytes) else {
                return Ok(BufferChoice {
                    strategy: rule.strategy,
                    reason: format!("{} (policy {}{passed_over})", merit(rule.strategy, context), self.name),
                });
            };
            passed_over.push_str(&format!("; not {}: {objection}", rule.strategy));
        }
        Err(Error::NotSupported {
            what: format!("a buffer of {bytes} bytes by policy {}", self.name),
            device: device.name().to_owned(),
            reason: match passed_over.strip_prefix("; ") {
                Some(reasons) => reasons.to_owned(),
                None => "the policy has no rule".to_owned(),
            },
        })
    }
}

impl Default for BufferPolicy {
    fn default() -> Self {
        Self::for_kernels()
    }
}

/// The merit of this kind of memory on the context's device.
fn merit(strategy: BufferStrategy, context: &Context) -> String {
    let device = context.device();
    let name = device.name();
    let discrete = device.kind() != DeviceKind::Cpu;
    match strategy {
        BufferStrategy::Regular => format!("a buffer object of `{name}`"),
        BufferStrategy::SvmCoarse if discrete => format!(
            "`{name}` has coarse-grained shared virtual memory: the device's own memory, at one address for host and device"
        ),
        BufferStrategy::SvmCoarse => format!(
            "`{name}` has coarse-grained shared virtual memory: memory that host and device share, at one address"
        ),
        BufferStrategy::SvmFine if discrete => format!(
            "`{name}` has fine-grained shared virtual memory: it needs no mapping, and lies in host memory on a discrete device"
        ),
        BufferStrategy::SvmFine => {
            format!("`{name}` has fine-grained shared virtual memory: it needs no mapping")
        }
        BufferStrategy::SvmSystem => format!("`{name}` can access all host memory"),
        BufferStrategy::HostPtr => format!("host memory that `{name}` uses in place"),
        BufferStrategy::External => format!("adopted memory of `{name}`"),
    }
}

/// The kind of memory for a request, and why. It displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferChoice {
    /// The kind.
    pub strategy: BufferStrategy,
    /// Why this one, and why none of those preferred to it.
    pub reason: String,
}

impl fmt::Display for BufferChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.strategy, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_found_by_its_own_name_and_ends_where_any_size_is_served() {
        for name in BufferPolicy::PRESETS {
            let policy = BufferPolicy::preset(name).unwrap();
            assert_eq!(policy.name(), name);
            let last = policy.rules().last().unwrap();
            // These two are on every device, so a preset never lacks a kind.
            assert!(matches!(
                last.strategy,
                BufferStrategy::Regular | BufferStrategy::HostPtr
            ));
            assert_eq!((last.min_bytes, last.max_bytes), (0, usize::MAX));
        }
        assert_eq!(BufferPolicy::preset("fastest"), None);
        assert_eq!(BufferPolicy::default().name(), "kernels");
    }

    #[test]
    fn a_threshold_leaves_no_size_without_a_rule_and_none_with_two() {
        for threshold in [0, 1, 4096, usize::MAX] {
            let policy = BufferPolicy::by_size(threshold, BufferStrategy::SvmCoarse);
            for bytes in [0, 1, 2, 4095, 4096, 4097, usize::MAX - 1, usize::MAX] {
                let serving: Vec<_> = policy
                    .rules()
                    .iter()
                    .filter(|rule| (rule.min_bytes..=rule.max_bytes).contains(&bytes))
                    .map(|rule| rule.strategy)
                    .collect();
                let expected = match bytes < threshold {
                    true => BufferStrategy::Regular,
                    false => BufferStrategy::SvmCoarse,
                };
                assert_eq!(serving, [expected], "{bytes} bytes, threshold {threshold}");
            }
        }
    }
}
