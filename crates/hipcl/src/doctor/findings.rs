//! The findings as data, as text and as JSON.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

/// Everything `hipcl doctor` found out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// The platform chosen: "amd", "nvidia" or "host".
    pub platform: String,
    /// Why it was.
    pub platform_why: String,
    /// The platform's libraries.
    pub libraries: Vec<Library>,
    /// The OpenCL libraries that gave devices.
    pub opencl_libraries: Vec<Library>,
    /// OpenCL libraries that gave none.
    pub opencl_tried: Vec<Tried>,
    /// All OpenCL devices.
    pub opencl_devices: Vec<OpenClDevice>,
    /// All HIP devices.
    pub hip_devices: Vec<HipDevice>,
    /// The two devices taken for the same one.
    pub pair: Option<Pair>,
    /// The routes between them.
    pub routes: Vec<RouteState>,
    /// What compiles HIP kernels.
    pub compiler: Compiler,
    /// Where compiled OpenCL programs are kept.
    pub opencl_cache: Option<String>,
    /// What to do, a line for each failure.
    pub advice: Vec<String>,
    /// Whether at least one direct route works.
    pub healthy: bool,
}

/// A library.
#[derive(Clone, Debug, Serialize)]
pub struct Library {
    /// What it is.
    pub name: String,
    /// Where it was found, or why it is missing.
    pub place: String,
    /// Whether it can be used.
    pub usable: bool,
    /// How it was found, or what it offers.
    pub detail: String,
}

/// Something that was looked at in vain.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// What was tried.
    pub what: String,
    /// Why it is of no use.
    pub reason: String,
}

/// An OpenCL device.
#[derive(Clone, Debug, Serialize)]
pub struct OpenClDevice {
    /// Its name.
    pub name: String,
    /// "CPU", "GPU", …
    pub kind: String,
    /// Its platform and version.
    pub platform: String,
    /// Version of its driver.
    pub driver: String,
    /// Shared virtual memory it offers.
    pub svm: String,
    /// Its PCI address, if it tells.
    pub pci: Option<String>,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// The library it comes from.
    pub library: String,
}

/// A HIP device.
#[derive(Clone, Debug, Serialize)]
pub struct HipDevice {
    /// Its number.
    pub ordinal: usize,
    /// Its name.
    pub name: String,
    /// Its architecture, such as `gfx908`.
    pub arch: String,
    /// Its PCI address, if it has one.
    pub pci: Option<String>,
    /// Its memory in bytes.
    pub memory_bytes: u64,
}

/// Two devices that are one.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// The OpenCL device.
    pub opencl: String,
    /// The HIP device.
    pub hip: String,
    /// How that was found.
    pub proof: String,
    /// How work is handed from one API to the other.
    pub grade: String,
}

/// What became of one route.
#[derive(Clone, Debug, Serialize)]
pub struct RouteState {
    /// Its name.
    pub route: String,
    /// Whether it works.
    pub works: bool,
    /// Whether it copies.
    pub copies: bool,
    /// Where its memory lives.
    pub residency: Option<String>,
    /// Why it does not work.
    pub reason: Option<String>,
}

/// What compiles HIP kernels.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Compiler {
    /// Whether a kernel could be compiled.
    pub works: bool,
    /// Which one it is, or why it does not work.
    pub detail: String,
}

impl Findings {
    /// The findings as a JSON text.
    pub fn to_json(&self) -> String {
        // strings, numbers and lists: there is no way to fail
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

fn mark(good: bool) -> &'static str {
    if good { "ok " } else { "no " }
}

impl Display for Findings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "platform   {} ({})", self.platform, self.platform_why)?;
        for Library {
            name,
            place,
            usable,
            detail,
        } in &self.libraries
        {
            writeln!(
                f,
                "  {} {name:<10} {place}{}",
                mark(*usable),
                brackets(detail)
            )?;
        }
        for HipDevice {
            ordinal,
            name,
            arch,
            pci,
            memory_bytes,
        } in &self.hip_devices
        {
            let pci = pci.as_deref().unwrap_or("no PCI address");
            writeln!(
                f,
                "  device {ordinal}: {name} ({arch}, {pci}, {})",
                gib(*memory_bytes)
            )?;
        }
        writeln!(
            f,
            "  {} compiler   {}",
            mark(self.compiler.works),
            self.compiler.detail
        )?;

        writeln!(f, "\nOpenCL")?;
        for Library {
            name,
            place,
            usable,
            detail,
        } in &self.opencl_libraries
        {
            writeln!(f, "  {} {name} {place}{}", mark(*usable), brackets(detail))?;
        }
        for Tried { what, reason } in &self.opencl_tried {
            writeln!(f, "  {} {what}: {reason}", mark(false))?;
        }
        for (i, device) in self.opencl_devices.iter().enumerate() {
            let OpenClDevice {
                name,
                kind,
                platform,
                driver,
                svm,
                pci,
                memory_bytes,
                library: _,
            } = device;
            let pci = pci.as_deref().unwrap_or("no PCI address");
            writeln!(
                f,
                "  device {i}: {name} ({kind}, {platform}, driver {driver}, SVM {svm}, {pci}, {})",
                gib(*memory_bytes)
            )?;
        }
        if let Some(cache) = &self.opencl_cache {
            writeln!(f, "  programs are cached in {cache}")?;
        }

        writeln!(f, "\nshared memory")?;
        match &self.pair {
            Some(Pair {
                opencl,
                hip,
                proof,
                grade,
            }) => {
                writeln!(f, "  pair       {opencl} (OpenCL) is {hip} (HIP): {proof}")?;
                writeln!(f, "  hand-off   {grade}")?;
            }
            None => writeln!(f, "  pair       none")?,
        }
        for RouteState {
            route,
            works,
            copies,
            residency,
            reason,
        } in &self.routes
        {
            let kind = if *copies { "copies" } else { "direct" };
            let detail = match (residency, reason) {
                (Some(residency), _) => format!("{kind}, residency {residency}"),
                (None, Some(reason)) => reason.clone(),
                (None, None) => kind.to_owned(),
            };
            writeln!(f, "  {} {route:<12} {detail}", mark(*works))?;
        }

        writeln!(f)?;
        for advice in &self.advice {
            writeln!(f, "advice: {advice}")?;
        }
        match self.healthy {
            true => writeln!(f, "healthy: OpenCL and HIP can work on the same bytes"),
            false => writeln!(
                f,
                "not healthy: no direct route between OpenCL and HIP works"
            ),
        }
    }
}

fn brackets(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!(" ({detail})")
    }
}
