//! SigMF recordings: `NAME.sigmf-meta` (JSON) beside `NAME.sigmf-data` (raw samples).

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::raw::Layout;
use crate::{Error, Result};

/// The part of the metadata that decides how the data is read.
#[derive(Deserialize)]
struct Meta {
    global: Global,
    #[serde(default)]
    captures: Vec<Capture>,
}

#[derive(Deserialize)]
struct Global {
    #[serde(rename = "core:datatype")]
    datatype: String,
    #[serde(rename = "core:sample_rate")]
    sample_rate: Option<f64>,
    #[serde(rename = "core:num_channels", default = "one")]
    channels: u64,
    #[serde(rename = "core:trailing_bytes", default)]
    trailing_bytes: u64,
    #[serde(rename = "core:metadata_only", default)]
    metadata_only: bool,
    #[serde(rename = "core:dataset")]
    dataset: Option<String>,
}

#[derive(Deserialize)]
struct Capture {
    #[serde(rename = "core:header_bytes", default)]
    header_bytes: u64,
}

fn one() -> u64 {
    1
}

/// Where the samples of a recording lie and how, and its rate if the metadata states one.
pub(super) struct Metadata {
    pub data: PathBuf,
    pub layout: Layout,
    pub rate_hz: Option<f64>,
}

/// Reads the metadata of the recording that `path` names: its metadata file, its data file, or both without the ending.
pub(super) fn read(path: &Path) -> Result<Metadata> {
    let meta_path = sibling(path, "sigmf-meta");
    let text = super::text(&meta_path)?;
    let wrong = |cause: String| Error::input(format!("`{}`: {cause}", meta_path.display()));
    let meta: Meta = serde_json::from_str(&text).map_err(|error| {
        wrong(format!(
            "not SigMF metadata: {error}; check the file, or read the data with --format and --rate"
        ))
    })?;

    let global = meta.global;
    let layout = match global.datatype.as_str() {
        "cf32_le" => Layout::Cf32,
        "ci16_le" => Layout::Ci16,
        "ci8" => Layout::Ci8,
        "cu8" => Layout::Cu8,
        other => {
            return Err(wrong(format!(
                "core:datatype `{other}` is not supported; convert the data to cf32_le, ci16_le, ci8 or cu8"
            )));
        }
    };
    if global.channels != 1 {
        return Err(wrong(format!(
            "the data has {} interleaved channels; extract one of them first",
            global.channels
        )));
    }
    if global.metadata_only || global.dataset.is_some() {
        return Err(wrong(
            "its samples are not in a .sigmf-data file; read them with --format and --rate".into(),
        ));
    }
    if global.trailing_bytes != 0 || meta.captures.iter().any(|capture| capture.header_bytes != 0) {
        return Err(wrong(
            "its data file contains header or trailing bytes; remove them first".into(),
        ));
    }
    if let Some(rate) = global.sample_rate {
        super::check::rate(rate).map_err(|_| {
            wrong(format!(
                "core:sample_rate {rate} is not a sample rate; correct it, or set --rate"
            ))
        })?;
    }

    Ok(Metadata {
        data: sibling(path, "sigmf-data"),
        layout,
        rate_hz: global.sample_rate,
    })
}

/// `path` with SigMF's ending replaced, or added where there is none.
fn sibling(path: &Path, ending: &str) -> PathBuf {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("sigmf-meta" | "sigmf-data" | "sigmf") => path.with_extension(ending),
        _ => {
            let mut name = path.as_os_str().to_owned();
            name.push(".");
            name.push(ending);
            name.into()
        }
    }
}
