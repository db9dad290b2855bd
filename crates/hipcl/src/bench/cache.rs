//! Programs from memory and from disk, against compiling them.

use std::cell::Cell;

use clmgr::{Program, ProgramCache};

use super::line::{Better, Line};
use super::{Figures, Setup, seconds};
use crate::{Error, Result};

const SOURCE: &str = include_str!("../../kernels/bench.cl");
const COMPILED: usize = 5;
const SAMPLES: usize = 50;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let context = setup.bridge.cl_context();
    let us = |times: &[f64]| -> Vec<f64> { times.iter().map(|time| time * 1e6).collect() };
    // another text each time, or the driver answers from a cache of its own
    let number = Cell::new(0);
    let compiled = seconds(COMPILED, || {
        number.set(number.get() + 1);
        let source = format!("{SOURCE}\n/* {} {} */", std::process::id(), number.get());
        Program::build(context, &source, "")?;
        Ok(())
    })?;
    let compiled = Line::of("OpenCL, compiled", "us", Better::Lower, us(&compiled));

    let folder = std::env::temp_dir().join(format!("hipcl-bench-{}", std::process::id()));
    std::fs::create_dir(&folder).map_err(|error| Error::write(&folder, error))?;
    let kept = from_cache(context, &folder);
    std::fs::remove_dir_all(&folder).map_err(|error| Error::write(&folder, error))?;
    let (memory, disk) = kept?;
    let line =
        |name, times: &[f64]| Line::of(name, "us", Better::Lower, us(times)).against(compiled.value, "compiling it");
    let mut found = Figures::default();
    found.lines.push(line("OpenCL, from memory", &memory));
    match disk {
        Some(times) => found.lines.push(line("OpenCL, from disk", &times)),
        None => found
            .notes
            .push("from disk: skipped: this driver keeps compiled kernels itself".to_owned()),
    }
    found.lines.push(compiled.clone().against(compiled.value, "itself"));
    Ok(found)
}

/// Seconds from memory, and from disk where the cache has a folder.
fn from_cache(context: &clmgr::Context, folder: &std::path::Path) -> Result<(Vec<f64>, Option<Vec<f64>>)> {
    // SAFETY: only caches of this measurement write there.
    let open = || unsafe { ProgramCache::open_in(context, folder) };
    let cache = open();
    let memory = seconds(SAMPLES, || {
        cache.get(SOURCE, "")?;
        Ok(())
    })?;
    if cache.folder().is_none() {
        return Ok((memory, None));
    }
    // each has an empty memory, and finds what the first one left on disk
    let hits = Cell::new(0);
    let disk = seconds(SAMPLES, || {
        let cache = open();
        cache.get(SOURCE, "")?;
        hits.set(hits.get() + cache.stats().disk_hits);
        Ok(())
    })?;
    if hits.get() < SAMPLES as u64 {
        return Err(Error::input(format!(
            "the cache in `{}` does not store programs; check that the folder for temporary files is writable",
            folder.display()
        )));
    }
    Ok((memory, Some(disk)))
}
