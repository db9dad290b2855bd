//! The findings as a text to read and to paste: plain characters, at most [`WIDTH`] columns, or as many as the terminal
//! has.

use std::fmt::{self, Display, Formatter, Write as _};

use super::findings::{Check, Findings, HipDevice, Library, OpenClDevice, Pair, State, Tried};
use super::tables;
use crate::columns::{WIDTH, wrap};

impl Display for Findings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(WIDTH))
    }
}

impl Findings {
    /// The findings as a text of lines with at most `width` columns.
    pub fn text(&self, width: usize) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.unbroken(&mut text, width);
        let lines = text.lines().map(|line| wrap(line, width) + "\n");
        lines.collect()
    }

    fn unbroken(&self, text: &mut String, width: usize) -> fmt::Result {
        self.head(text)?;
        self.verdict(text)?;
        self.hip(text)?;
        self.opencl(text)?;
        self.system(text)?;
        self.shared(text)?;
        tables::routes(text, &self.routes, self.host_ptr.as_ref(), width)?;
        tables::grades(text, &self.grades)?;
        if let Some(state) = &self.one_stream {
            tables::one_stream(text, state)?;
        }
        tables::carriers(text, &self.carriers)?;
        tables::allocations(text, &self.allocations, width)?;
        if let Some(comparison) = &self.comparison {
            write!(text, "\n{comparison}")?;
        }
        Ok(())
    }

    fn head(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "hipcl {} doctor, {}", self.hipcl, self.taken)?;
        if let Some(emulator) = &self.emulator {
            writeln!(
                out,
                "{emulator} emulates the GPU: results come from the libraries below, times are meaningless"
            )?;
        }
        Ok(())
    }

    fn hip(&self, out: &mut String) -> fmt::Result {
        let platform = if self.platform.is_empty() {
            "unknown"
        } else {
            &self.platform
        };
        writeln!(out, "\nplatform   {platform}{}", brackets(&self.platform_why))?;
        if let Some(failure) = &self.platform_failure {
            writeln!(out, "  {} {failure}", mark(false))?;
        }
        for Library {
            name,
            place,
            usable,
            detail,
        } in &self.libraries
        {
            let detail = brackets(detail);
            writeln!(out, "  {} {name:<10} {place}{detail}", mark(*usable))?;
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
            let memory = gib(*memory_bytes);
            writeln!(out, "  device {ordinal}: {name} ({arch}, {pci}, {memory})")?;
        }
        let compiler = &self.compiler;
        if !compiler.detail.is_empty() {
            let mark = mark(compiler.works);
            writeln!(out, "  {mark} compiler   {}", compiler.detail)?;
        }
        Ok(())
    }

    fn opencl(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "\nOpenCL")?;
        for Library {
            name,
            place,
            usable,
            detail,
        } in &self.opencl_libraries
        {
            let detail = brackets(detail);
            writeln!(out, "  {} {name} {place}{detail}", mark(*usable))?;
        }
        for Tried { what, reason } in &self.opencl_tried {
            writeln!(out, "  {} {what}: {reason}", mark(false))?;
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
                out,
                "  device {i}: {name} ({kind}, {platform}, driver {driver}, SVM {svm}, {pci}, {})",
                gib(*memory_bytes)
            )?;
        }
        if let Some(cache) = &self.opencl_cache {
            writeln!(out, "  programs are cached in {cache}")?;
        }
        Ok(())
    }

    fn system(&self, out: &mut String) -> fmt::Result {
        if self.checks.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nsystem")?;
        let width = self.checks.iter().map(|check| check.name.chars().count());
        let width = width.max().unwrap_or_default();
        for Check { name, state, found, .. } in &self.checks {
            let mark = match state {
                State::Good => "ok ",
                State::Bad => "no ",
                State::Info => "   ",
                State::Unknown => "?  ",
            };
            writeln!(out, "  {mark} {name:<width$}  {found}")?;
        }
        Ok(())
    }

    fn shared(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "\nshared memory")?;
        for pairing in &self.pairing {
            let devices: Vec<String> = pairing.opencl.iter().map(usize::to_string).collect();
            let may_be = match devices.as_slice() {
                [] => "is none of the OpenCL devices".to_owned(),
                devices => format!("may be OpenCL device {}", devices.join(" or ")),
            };
            writeln!(out, "  HIP device {} {may_be}", pairing.hip)?;
        }
        match &self.pair {
            Some(Pair {
                opencl,
                hip,
                proof,
                grade,
            }) => {
                writeln!(out, "  pair       {opencl} (OpenCL) is {hip} (HIP): {proof}")?;
                writeln!(out, "  hand-off   {grade}")?;
            }
            None => writeln!(out, "  pair       none")?,
        }
        Ok(())
    }

    fn verdict(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "\n{}", self.verdict)?;
        for advice in &self.advice {
            writeln!(out, "advice: {advice}")?;
        }
        Ok(())
    }
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

fn mark(good: bool) -> &'static str {
    if good { "ok " } else { "no " }
}

fn brackets(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!(" ({detail})")
    }
}
