//! Sample files: what is read as what, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};

use hipcl::C32;
use hipcl::input::{Format, read};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn file(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn cf32(samples: &[C32]) -> Vec<u8> {
    samples
        .iter()
        .flat_map(|x| [x.re.to_le_bytes(), x.im.to_le_bytes()].concat())
        .collect()
}

/// A .npy file as the format's description (version 1.0) lays it out.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// The error's text, which must be one line that holds all of `parts`.
#[track_caller]
fn refused(path: &Path, format: Option<Format>, rate: Option<f64>, parts: &[&str]) {
    let Err(error) = read(path, format, rate) else {
        panic!("`{}` was accepted as {format:?}", path.display())
    };
    let message = error.one_line();
    assert_eq!(error.to_string().lines().count(), 1, "{message}");
    for part in parts {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
}

const RATE: Option<f64> = Some(4e6);

/// The sizes in a header are untrusted: nothing is allocated for bytes that are not there.
#[test]
fn a_npy_header_that_promises_terabytes_is_refused() {
    let folder = folder();
    for shape in ["(68719476736,)", "(137438953472,)", "(1099511627776,)"] {
        let path = file(&folder, "huge.npy", &npy("<c8", shape, &[0; 72]));
        refused(&path, None, RATE, &["huge.npy", "EOF before reading all data"]);
    }
    let mut long = b"\x93NUMPY\x02\x00".to_vec();
    long.extend([0xff; 64]);
    let path = file(&folder, "long.npy", &long);
    refused(&path, None, RATE, &["long.npy", "4294967295 bytes"]);
}

#[test]
fn every_format_gives_the_same_samples() {
    let folder = folder();
    let expected = [C32::new(0.5, -0.25), C32::new(-1.0, 0.75), C32::new(0.0, 0.5)];
    let i16s: Vec<u8> = expected
        .iter()
        .flat_map(|x| [x.re, x.im])
        .flat_map(|v| ((v * 32768.0) as i16).to_le_bytes())
        .collect();
    let i8s: Vec<u8> = expected
        .iter()
        .flat_map(|x| [x.re, x.im])
        .map(|v| (v * 128.0) as i8 as u8)
        .collect();
    let big_endian: Vec<u8> = expected
        .iter()
        .flat_map(|x| [x.re.to_be_bytes(), x.im.to_be_bytes()].concat())
        .collect();
    for (name, bytes) in [
        ("a.cf32", cf32(&expected)),
        ("a.ci16", i16s.clone()),
        ("a.ci8", i8s),
        ("a.npy", npy("<c8", "(3,)", &cf32(&expected))),
        ("b.npy", npy(">c8", "(3,)", &big_endian)),
    ] {
        let recording = read(&file(&folder, name, &bytes), None, RATE).unwrap();
        assert_eq!(recording.samples, expected, "{name}");
        assert_eq!(recording.rate_hz, 4e6);
    }
    file(&folder, "s.sigmf-data", &i16s);
    let meta = r#"{"global": {"core:datatype": "ci16_le", "core:sample_rate": 2.5e6, "core:version": "1.0.0"}, "captures": [{"core:sample_start": 0}], "annotations": []}"#;
    file(&folder, "s.sigmf-meta", meta.as_bytes());
    for name in ["s.sigmf-meta", "s.sigmf-data", "s"] {
        let recording = read(&folder.path().join(name), Some(Format::Sigmf), None).unwrap();
        assert_eq!(
            (recording.samples.as_slice(), recording.rate_hz),
            (&expected[..], 2.5e6),
            "{name}"
        );
    }
    let recording = read(&folder.path().join("s.sigmf-meta"), None, RATE).unwrap();
    assert_eq!(recording.rate_hz, 4e6, "a rate that is given wins");
}

#[test]
fn unsigned_bytes_are_centred() {
    let folder = folder();
    let recording = read(&file(&folder, "a.cu8", &[255, 0, 0, 255]), None, RATE).unwrap();
    assert_eq!(recording.samples, [C32::new(1.0, -1.0), C32::new(-1.0, 1.0)]);
}

#[test]
fn a_file_that_can_not_be_read_is_named() {
    let folder = folder();
    refused(
        &folder.path().join("none.cf32"),
        None,
        RATE,
        &["none.cf32", "check the path"],
    );
    refused(
        &folder.path().join("none.npy"),
        None,
        RATE,
        &["none.npy", "check the path"],
    );
    refused(folder.path(), Some(Format::Cf32), RATE, &["cannot read"]);
    refused(folder.path(), Some(Format::Npy), RATE, &[]);
    let lonely = file(&folder, "x.sigmf-data", &[1, 2, 3, 4]);
    refused(&lonely, None, RATE, &["x.sigmf-meta"]);
    let meta = file(
        &folder,
        "y.sigmf-meta",
        br#"{"global": {"core:datatype": "ci8", "core:sample_rate": 1e6}}"#,
    );
    refused(&meta, None, None, &["y.sigmf-data"]);
}

#[test]
fn an_empty_file_is_refused() {
    let folder = folder();
    for name in ["a.cf32", "a.ci16", "a.ci8", "a.cu8", "a.npy"] {
        refused(&file(&folder, name, &[]), None, RATE, &["is empty"]);
    }
    refused(
        &file(&folder, "b.npy", &npy("<c8", "(0,)", &[])),
        None,
        RATE,
        &["an empty array"],
    );
    file(&folder, "s.sigmf-data", &[]);
    let meta = file(
        &folder,
        "s.sigmf-meta",
        br#"{"global": {"core:datatype": "ci8", "core:sample_rate": 1e6}}"#,
    );
    refused(&meta, None, None, &["s.sigmf-data` is empty"]);
    refused(&file(&folder, "t.sigmf-meta", &[]), None, None, &["not SigMF metadata"]);
}

#[test]
fn a_truncated_file_is_refused() {
    let folder = folder();
    for (name, size) in [("a.cf32", 8), ("a.ci16", 4), ("a.ci8", 2), ("a.cu8", 2)] {
        let path = file(&folder, name, &vec![7; 10 * size + size / 2]);
        refused(
            &path,
            None,
            RATE,
            &["truncated", &format!("the {size} bytes of a sample")],
        );
    }
    let whole = npy("<c8", "(3,)", &cf32(&[C32::new(1.0, 2.0); 3]));
    for cut in [1, 8, whole.len() - 9, whole.len() - 3] {
        refused(
            &file(&folder, "a.npy", &whole[..whole.len() - cut]),
            None,
            RATE,
            &["a.npy", "cannot use"],
        );
    }
}

#[test]
fn another_array_than_a_line_of_complex64_is_refused() {
    let folder = folder();
    for (descr, shape, bytes) in [
        ("<c16", "(2,)", 32),
        ("<f4", "(4,)", 16),
        ("<c8", "(2, 1)", 16),
        ("<i2", "(8,)", 16),
    ] {
        let path = file(&folder, "a.npy", &npy(descr, shape, &vec![1; bytes]));
        refused(&path, None, RATE, &["one-dimensional complex64"]);
    }
    refused(
        &file(&folder, "b.npy", b"no numpy at all, but long enough for a header"),
        None,
        RATE,
        &["b.npy"],
    );
}

#[test]
fn floats_are_not_taken_for_integers_nor_integers_for_floats() {
    let folder = folder();
    let noise = |n: u32| ((n.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0).powi(3);
    let samples: Vec<C32> = (0..4000).map(|n| C32::new(noise(2 * n), noise(2 * n + 1))).collect();
    for scale in [1e-6, 1.0, 3e4] {
        let scaled: Vec<C32> = samples.iter().map(|x| x * scale).collect();
        let path = file(&folder, "floats.bin", &cf32(&scaled));
        for format in [Format::Ci16, Format::Ci8, Format::Cu8] {
            refused(&path, Some(format), RATE, &["contains 32-bit floats", "--format cf32"]);
        }
        assert!(read(&path, Some(Format::Cf32), RATE).is_ok());
    }
    // one bit a sample, at a level whose bytes are an ordinary float
    let bits: Vec<u8> = samples
        .iter()
        .flat_map(|x| [x.re, x.im])
        .map(|v| if v > 0.0 { 64 } else { 192 })
        .collect();
    assert!(read(&file(&folder, "bits.ci8", &bits), None, RATE).is_ok());
    let parts = || samples.iter().flat_map(|x| [x.re, x.im]);
    for full_scale in [1.0, 0.1, 0.02] {
        let wide: Vec<u8> = parts()
            .flat_map(|v| ((v * full_scale * 32767.0) as i16).to_le_bytes())
            .collect();
        let signed: Vec<u8> = parts().map(|v| (v * full_scale * 127.0) as i8 as u8).collect();
        let unsigned: Vec<u8> = parts().map(|v| (v * full_scale * 127.5 + 127.5) as u8).collect();
        for (bytes, format) in [(wide, Format::Ci16), (signed, Format::Ci8), (unsigned, Format::Cu8)] {
            let path = file(&folder, "integers.bin", &bytes);
            assert!(read(&path, Some(format), RATE).is_ok(), "{format:?} at {full_scale}");
            if format == Format::Ci16 {
                refused(&path, Some(Format::Cf32), RATE, &["--format"]);
            }
        }
    }
}

#[test]
fn a_number_that_is_none_is_named_by_its_index() {
    let folder = folder();
    for bad in [
        C32::new(f32::NAN, 0.0),
        C32::new(0.0, f32::INFINITY),
        C32::new(f32::NEG_INFINITY, 1.0),
    ] {
        let mut samples = vec![C32::new(0.1, 0.2); 100];
        samples[0] = C32::new(0.3, 0.2);
        samples[41] = bad;
        refused(
            &file(&folder, "a.cf32", &cf32(&samples)),
            None,
            RATE,
            &["sample 41", "a.cf32"],
        );
        refused(
            &file(&folder, "a.npy", &npy("<c8", "(100,)", &cf32(&samples))),
            None,
            RATE,
            &["sample 41"],
        );
    }
}

#[test]
fn a_signal_without_signal_is_refused() {
    let folder = folder();
    refused(&file(&folder, "zero.cf32", &[0; 800]), None, RATE, &["no signal"]);
    refused(
        &file(&folder, "constant.ci16", &[1; 800]),
        None,
        RATE,
        &["all 200 samples", "no signal"],
    );
    let tiny = [C32::new(1e-30, 0.0), C32::new(0.0, 1e-30)];
    refused(&file(&folder, "tiny.cf32", &cf32(&tiny)), None, RATE, &["mean power"]);
    let huge = [C32::new(1e30, 0.0), C32::new(0.0, 1e30)];
    refused(&file(&folder, "huge.cf32", &cf32(&huge)), None, RATE, &["mean power"]);
}

#[test]
fn a_rate_is_needed_and_must_be_one() {
    let folder = folder();
    let path = file(&folder, "a.ci8", &[1, 2, 3, 4]);
    refused(&path, None, None, &["--rate"]);
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(&path, None, Some(rate), &["not a sample rate", "--rate"]);
    }
}

#[test]
fn a_format_is_needed_if_the_name_tells_none() {
    let folder = folder();
    let path = file(&folder, "recording.bin", &[1, 2, 3, 4]);
    refused(&path, None, RATE, &["--format to cf32|ci16|ci8|cu8|npy|sigmf"]);
    assert!(read(&path, Some(Format::Ci8), RATE).is_ok());
}

#[test]
fn sigmf_metadata_that_can_not_be_followed_is_refused() {
    let folder = folder();
    file(&folder, "s.sigmf-data", &[1, 2, 3, 4]);
    for (meta, part) in [
        ("{", "not SigMF metadata"),
        ("[]", "not SigMF metadata"),
        (r#"{"global": {}}"#, "core:datatype"),
        (
            r#"{"global": {"core:datatype": "cf32_be"}}"#,
            "`cf32_be` is not supported",
        ),
        (
            r#"{"global": {"core:datatype": "rf32_le"}}"#,
            "`rf32_le` is not supported",
        ),
        (r#"{"global": {"core:datatype": "ci8"}}"#, "--rate"),
        (
            r#"{"global": {"core:datatype": "ci8", "core:sample_rate": 0}}"#,
            "core:sample_rate 0",
        ),
        (
            r#"{"global": {"core:datatype": "ci8", "core:sample_rate": 1e6, "core:num_channels": 2}}"#,
            "2 interleaved channels",
        ),
        (
            r#"{"global": {"core:datatype": "ci8", "core:sample_rate": 1e6, "core:dataset": "x.raw"}}"#,
            "--format",
        ),
        (
            r#"{"global": {"core:datatype": "ci8", "core:sample_rate": 1e6, "core:trailing_bytes": 3}}"#,
            "remove them",
        ),
        (
            r#"{"global": {"core:datatype": "ci8", "core:sample_rate": 1e6}, "captures": [{"core:header_bytes": 2}]}"#,
            "remove them",
        ),
    ] {
        let path = file(&folder, "s.sigmf-meta", meta.as_bytes());
        refused(&path, None, None, &["s.sigmf-meta", part]);
    }
}
