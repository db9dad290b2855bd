//! The findings as a text to read and to paste: plain characters, at most [`WIDTH`] columns.

use std::fmt::{self, Display, Formatter, Write as _};

use super::findings::{Check, Findings, HipDevice, Library, OpenClDevice, Pair, State, Tried};
use super::tables;

/// Columns of the text.
pub(crate) const WIDTH: usize = 100;

impl Display for Findings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.head(&mut text)?;
        self.verdict(&mut text)?;
        self.hip(&mut text)?;
        self.opencl(&mut text)?;
        self.system(&mut text)?;
        self.shared(&mut text)?;
        tables::routes(&mut text, &self.routes, self.host_ptr.as_ref())?;
        tables::grades(&mut text, &self.grades)?;
        if let Some(state) = &self.one_stream {
            tables::one_stream(&mut text, state)?;
        }
        tables::carriers(&mut text, &self.carriers)?;
        tables::allocations(&mut text, &self.allocations)?;
        if let Some(comparison) = &self.comparison {
            write!(text, "\n{comparison}")?;
        }
        for line in text.lines() {
            f.write_str(&wrap(line, WIDTH))?;
            f.write_str("\n")?;
        }
        Ok(())
    }
}

impl Findings {
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
            let devices = match devices.as_slice() {
                [] => "no OpenCL device".to_owned(),
                devices => format!("OpenCL device {}", devices.join(" or ")),
            };
            writeln!(out, "  HIP device {} may be {devices}", pairing.hip)?;
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

/// Breaks a line at spaces, and a word that is too long wherever it must; what follows is indented.
pub(crate) fn wrap(line: &str, width: usize) -> String {
    let indent: usize = line.chars().take_while(|&c| c == ' ').count() + 4;
    let mut left: Vec<char> = line.chars().collect();
    let mut text = String::new();
    let mut room = width;
    while left.len() > room {
        let space = left[..=room].iter().rposition(|&c| c == ' ');
        let at = match space {
            // not inside the indentation of the line itself
            Some(at) if left[..at].iter().any(|&c| c != ' ') => at,
            _ => room,
        };
        let rest = left.split_off(at);
        text.extend(left);
        text.truncate(text.trim_end().len());
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', indent));
        left = rest.into_iter().skip_while(|&c| c == ' ').collect();
        room = width - indent;
    }
    text.extend(left);
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn long_lines_are_broken_and_nothing_is_lost() {
        assert_eq!(wrap("  short", 20), "  short");
        assert_eq!(
            wrap("  one two three four five", 12),
            "  one two\n      three\n      four\n      five"
        );
        let path = format!("  {}", "x".repeat(30));
        let broken = wrap(&path, 12);
        assert!(broken.lines().all(|line| line.chars().count() <= 12), "{broken}");
        let kept: String = broken.chars().filter(|c| !c.is_whitespace()).collect();
        assert_eq!(kept, path.trim());
        assert_eq!(wrap("µµµ", 3), "µµµ");
    }
}
