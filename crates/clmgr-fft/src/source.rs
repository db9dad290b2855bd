//! Puts the defines of a plan in front of the kernels' template.

use std::fmt::Write;

use crate::Direction;
use crate::tables::FINE_BITS;

const BUTTERFLIES: &str = include_str!("../kernels/fft.cl");
const ENDS: &str = include_str!("../kernels/fft_ends.cl");

/// The kernels behind the butterflies.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Template {
    Wide,
    Narrow,
    Tile,
    Halves,
}

impl Template {
    fn text(self) -> &'static str {
        match self {
            Self::Wide => include_str!("../kernels/fft_wide.cl"),
            Self::Narrow => include_str!("../kernels/fft_narrow.cl"),
            Self::Tile => include_str!("../kernels/fft_tile.cl"),
            Self::Halves => include_str!("../kernels/fft_halves.cl"),
        }
    }
}

/// The source of a program, before its template.
#[derive(PartialEq)]
pub(crate) struct Source {
    defines: String,
    template: Template,
}

impl Source {
    pub fn new(template: Template, len: usize, direction: Direction) -> Self {
        let sign = match direction {
            Direction::Forward => "1.0f",
            Direction::Inverse => "-1.0f",
        };
        let source = Self {
            defines: String::new(),
            template,
        };
        let source = match template {
            Template::Wide => source.define("FFT_WIDE", 1),
            Template::Narrow | Template::Tile | Template::Halves => source,
        };
        source
            .define("FFT_N", len)
            .define("FFT_SIGN", sign)
            .define("FINE_BITS", FINE_BITS)
    }

    pub fn define(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        // Writing to a string does not fail.
        let _ = writeln!(self.defines, "#define {name} {value}");
        self
    }

    pub fn finish(mut self) -> String {
        for text in [BUTTERFLIES, ENDS, self.template.text()] {
            self.defines.push_str(text);
        }
        self.defines
    }
}

/// Where the wide passes of a kernel read first and write last.
pub(crate) struct WidePasses<'a> {
    pub radices: &'a [usize],
    pub offsets: &'a [usize],
    /// The accessor of the first pass, e.g. `LOAD_A`.
    pub load: &'a str,
    /// The accessor of the last pass, if it does not write to a private array.
    pub store: Option<&'a str>,
}

/// The passes as calls of the template's macros, and the private array that holds the result.
pub(crate) fn wide_body(passes: &WidePasses<'_>) -> (String, char) {
    let mut body = String::new();
    let mut load = passes.load.to_owned();
    let mut current = passes.load.chars().last().unwrap_or('A');
    let mut s = 1;
    let mut rest: usize = passes.radices.iter().product();
    for (index, &radix) in passes.radices.iter().enumerate() {
        let last = index + 1 == passes.radices.len();
        let next = if current == 'A' { 'B' } else { 'A' };
        let store = match passes.store {
            Some(store) if last => store.to_owned(),
            _ => format!("STORE_{next}"),
        };
        rest /= radix;
        let call = if last {
            format!("LAST({radix}, {s}, {load}, {store}) ")
        } else {
            format!(
                "PASS({radix}, {rest}, {s}, {}, {load}, {store}) ",
                passes.offsets[index]
            )
        };
        body.push_str(&call);
        current = next;
        load = format!("LOAD_{current}");
        s *= radix;
    }
    (body, current)
}

/// The passes of the kernel in local memory.
pub(crate) fn local_body(radices: &[usize], offsets: &[usize], group: usize, items: usize) -> String {
    let len: usize = radices.iter().product();
    let mut body = String::new();
    let mut s = 1;
    let mut rest = len;
    for (index, &radix) in radices.iter().enumerate() {
        rest /= radix;
        let read = if index == 0 { "READ_IN" } else { "READ_LOCAL" };
        let write = if index + 1 == radices.len() {
            "WRITE_OUT"
        } else {
            "WRITE_LOCAL"
        };
        let each = (group * (len / radix)).div_ceil(items);
        let _ = write!(
            body,
            "PASS({radix}, {rest}, {s}, {}, {each}, {read}, {write}) ",
            offsets[index]
        );
        s *= radix;
    }
    body
}

/// A pass in global memory: the kernel of this index.
pub(crate) fn global_body(radices: &[usize], index: usize) -> String {
    let s: usize = radices[..index].iter().product();
    let rest: usize = radices[index + 1..].iter().product();
    format!("PASS({}, {}, {rest}, {s}) ", pass_name(index), radices[index])
}

pub(crate) fn pass_name(index: usize) -> String {
    format!("fft_pass{index}")
}
