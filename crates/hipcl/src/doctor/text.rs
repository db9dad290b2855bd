//! The findings as a text to read and to paste: plain characters, at most [`WIDTH`] columns.

use std::fmt::{self, Display, Formatter, Write as _};

use super::findings::{
    Check, Findings, HipDevice, Library, OpenClDevice, Pair, RouteState, State, Tried,
};

/// Columns of the text.
pub(crate) const WIDTH: usize = 100;

impl Display for Findings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.head(&mut text)?;
        self.hip(&mut text)?;
        self.opencl(&mut text)?;
        self.system(&mut text)?;
        self.shared(&mut text)?;
        if let Some(comparison) = &self.comparison {
            write!(text, "\n{comparison}")?;
        }
        self.verdict(&mut text)?;
        for line in text.lines() {
            f.write_str(&wrap(line, WIDTH))?;
            f.write_str("\n")?;
        }
        Ok(())
    }
}

impl Findings {
    fn head(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "hipcl {} doctor, {}", self.hipcl, self.taken)
    }

    fn hip(&self, out: &mut String) -> fmt::Result {
        let platform = if self.platform.is_empty() {
            "unknown"
        } else {
            &self.platform
        };
        writeln!(
            out,
            "\nplatform   {platform}{}",
            brackets(&self.platform_why)
        )?;
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
        for Check {
            name, state, found, ..
        } in &self.checks
        {
            let mark = match state {
                State::Good => "ok ",
                State::Bad => "no ",
                State::Told => "   ",
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
                writeln!(
                    out,
                    "  pair       {opencl} (OpenCL) is {hip} (HIP): {proof}"
                )?;
                writeln!(out, "  hand-off   {grade}")?;
            }
            None => writeln!(out, "  pair       none")?,
        }
        if self.routes.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n     {:<13}{:<7} {:<11} {:>10} {:>10} {:>10} {:>10}  ROCm from",
            "route", "kind", "memory", "CL>HIP us", "HIP>CL us", "CL GB/s", "HIP GB/s"
        )?;
        for route in self.routes.iter().filter(|route| route.works) {
            works(out, route)?;
        }
        for route in self.routes.iter().filter(|route| !route.works) {
            let reason = route.reason.as_deref().unwrap_or("not tried");
            let kind = if route.impossible { "-  " } else { "no " };
            writeln!(out, "  {kind}{:<13}{reason}", route.route)?;
        }
        if let Some(host_ptr) = &self.host_ptr {
            let (kind, text) = match (&host_ptr.proof, &host_ptr.reason) {
                (Some(proof), _) => ("ok ", proof.as_str()),
                (None, reason) if host_ptr.impossible => ("-  ", reason.as_deref().unwrap_or("")),
                (None, reason) => ("no ", reason.as_deref().unwrap_or("not tried")),
            };
            writeln!(out, "  {kind}HIP's memory as a cl_mem: {text}")?;
        }
        for route in &self.routes {
            let Some(died) = &route.died else { continue };
            for line in &died.stderr {
                writeln!(out, "  stderr of {}: {line}", route.route)?;
            }
        }
        Ok(())
    }

    fn verdict(&self, out: &mut String) -> fmt::Result {
        writeln!(out)?;
        for advice in &self.advice {
            writeln!(out, "advice: {advice}")?;
        }
        match self.healthy {
            true => writeln!(out, "healthy: OpenCL and HIP can work on the same bytes"),
            false => writeln!(
                out,
                "not healthy: no direct route between OpenCL and HIP works"
            ),
        }
    }
}

fn works(out: &mut String, route: &RouteState) -> fmt::Result {
    let kind = if route.copies { "copies" } else { "direct" };
    let residency = route.residency.as_deref().unwrap_or("unknown");
    write!(out, "  ok {:<13}{kind:<7} {residency:<11}", route.route)?;
    match &route.figures {
        Some(figures) => {
            for value in [
                figures.opencl_to_hip_us,
                figures.hip_to_opencl_us,
                figures.opencl_gb_s,
                figures.hip_gb_s,
            ] {
                write!(out, " {value:>10.1}")?;
            }
        }
        None => write!(out, " {0:>10} {0:>10} {0:>10} {0:>10}", "-")?,
    }
    writeln!(out, "  {}", route.oldest_rocm.as_deref().unwrap_or("none"))?;
    if let Some(reason) = &route.figures_missing {
        writeln!(out, "     {:<13}not measured: {reason}", "")?;
    }
    Ok(())
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
        assert!(
            broken.lines().all(|line| line.chars().count() <= 12),
            "{broken}"
        );
        let kept: String = broken.chars().filter(|c| !c.is_whitespace()).collect();
        assert_eq!(kept, path.trim());
        assert_eq!(wrap("µµµ", 3), "µµµ");
    }
}
