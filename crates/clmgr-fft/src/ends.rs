//! What the first kernel of a transform does on reading its numbers, and the last one on writing them: the Rust side of
//! `kernels/fft_ends.cl`.

use clmgr::C32;

use crate::Direction;
use crate::chirp::Chirp;
use crate::source::Source;
use crate::spec::{Kind, Layout, Spec};
use crate::tables::first_roots;

/// How a row is read.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub form: LoadForm,
    /// The numbers of a row of the input.
    pub len: usize,
    /// Whether the transform asks for numbers behind those.
    pub short: bool,
    pub layout: Layout,
    pub scale: f32,
    /// Factors for the input's numbers, the scale included.
    pub window: Option<Vec<f32>>,
    /// Factors for the transform's numbers, behind which there are only zeros.
    pub chirp: Option<Chirp>,
}

/// What the transform's numbers are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadForm {
    Complex,
    Real,
    /// Two real numbers make a complex one.
    Pairs,
    /// The first half of a spectrum of this odd length.
    Hermitian(usize),
    /// The first half of a spectrum of twice this length, as the transform of pairs.
    Halves(usize),
}

/// How a row is written.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub form: StoreForm,
    /// The numbers of the transform that are kept.
    pub len: usize,
    pub layout: Layout,
    pub scale: f32,
    /// Factors for the numbers that are kept.
    pub chirp: Option<Chirp>,
}

/// What becomes of the transform's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreForm {
    Complex,
    /// Their real parts.
    Real,
    /// A complex number is two real ones.
    Pairs,
}

impl Load {
    /// Rows of the transform's length, one behind the other, as they are.
    pub fn plain(len: usize) -> Self {
        Self {
            form: LoadForm::Complex,
            len,
            short: false,
            layout: Layout::rows(len),
            scale: 1.0,
            window: None,
            chirp: None,
        }
    }

    /// A plan's input.
    pub fn of(spec: &Spec) -> Self {
        let scale = spec.input_scale;
        // Double precision, so that the product is rounded once.
        let scaled = |factor: &f32| (f64::from(*factor) * f64::from(scale)) as f32;
        let form = match (spec.kind, spec.is_even()) {
            (Kind::Complex, _) => LoadForm::Complex,
            (Kind::RealToComplex, true) => LoadForm::Pairs,
            (Kind::RealToComplex, false) => LoadForm::Real,
            (Kind::ComplexToReal, true) => LoadForm::Halves(spec.len / 2),
            (Kind::ComplexToReal, false) => LoadForm::Hermitian(spec.len),
        };
        Self {
            form,
            len: spec.input.len,
            short: spec.input.len < spec.most(),
            layout: spec.input.layout,
            scale,
            window: spec.window.as_ref().map(|window| window.iter().map(scaled).collect()),
            chirp: None,
        }
    }

    fn is_plain(&self) -> bool {
        self.form == LoadForm::Complex
            && !self.short
            && self.layout.stride == 1
            && self.scale == 1.0
            && self.window.is_none()
            && self.chirp.is_none()
    }

    pub fn define(&self, source: Source) -> Source {
        let source = source.define("LOAD_DISTANCE", format_args!("{}ul", self.layout.distance));
        if self.is_plain() {
            return source;
        }
        let mut source = source
            .define("LOAD_FUSED", 1)
            .define("LOAD_STRIDE", format_args!("{}ul", self.layout.stride))
            .define("LOAD_LEN", format_args!("{}u", self.len));
        if self.short {
            source = source.define("LOAD_SHORT", 1);
        }
        if self.window.is_some() {
            source = source.define("LOAD_WINDOW", 1);
        } else if self.scale != 1.0 {
            source = source.define("LOAD_SCALE", literal(self.scale));
        }
        if let Some(chirp) = &self.chirp {
            source = source.define("LOAD_CHIRP", format_args!("{}u", chirp.len()));
        }
        match self.form {
            LoadForm::Complex => source.define("LOAD_COMPLEX", 1),
            LoadForm::Real => source.define("LOAD_REAL", 1),
            LoadForm::Pairs => source.define("LOAD_PAIRS", 1),
            LoadForm::Hermitian(len) => source
                .define("LOAD_HERMITIAN", 1)
                .define("HERMITIAN", format_args!("{len}u")),
            LoadForm::Halves(half) => source.define("LOAD_HALVES", 1).define("HALF", format_args!("{half}u")),
        }
    }

    /// The table `load_roots`, if the form needs it.
    pub fn roots(&self) -> Option<Vec<C32>> {
        match self.form {
            LoadForm::Halves(half) => Some(first_roots(half, 2 * half, Direction::Inverse)),
            _ => None,
        }
    }
}

impl Store {
    /// Rows of the transform's length, one behind the other, as they are.
    pub fn plain(len: usize) -> Self {
        Self {
            form: StoreForm::Complex,
            len,
            layout: Layout::rows(len),
            scale: 1.0,
            chirp: None,
        }
    }

    /// A plan's output. The kernel that completes a spectrum of pairs scales it.
    pub fn of(spec: &Spec) -> Self {
        let whole = spec.transform();
        let (form, len, scale) = match (spec.kind, spec.is_even()) {
            (Kind::Complex, _) => (StoreForm::Complex, whole, spec.output_scale),
            (Kind::RealToComplex, true) => (StoreForm::Complex, whole, 1.0),
            (Kind::RealToComplex, false) => (StoreForm::Complex, spec.output.len, spec.output_scale),
            (Kind::ComplexToReal, true) => (StoreForm::Pairs, whole, spec.output_scale),
            (Kind::ComplexToReal, false) => (StoreForm::Real, whole, spec.output_scale),
        };
        Self {
            form,
            len,
            layout: spec.output.layout,
            scale,
            chirp: None,
        }
    }

    fn is_plain(&self, transform: usize) -> bool {
        self.form == StoreForm::Complex
            && self.len == transform
            && self.layout.stride == 1
            && self.scale == 1.0
            && self.chirp.is_none()
    }

    /// For a transform of this length.
    pub fn define(&self, source: Source, transform: usize) -> Source {
        let source = source.define("STORE_DISTANCE", format_args!("{}ul", self.layout.distance));
        if self.is_plain(transform) {
            return source;
        }
        let mut source = source
            .define("STORE_FUSED", 1)
            .define("STORE_STRIDE", format_args!("{}ul", self.layout.stride));
        if self.len < transform {
            source = source.define("STORE_LEN", format_args!("{}u", self.len));
        }
        if self.scale != 1.0 {
            source = source.define("STORE_SCALE", literal(self.scale));
        }
        if self.chirp.is_some() {
            source = source.define("STORE_CHIRP", 1);
        }
        match self.form {
            StoreForm::Complex => source.define("STORE_COMPLEX", 1),
            StoreForm::Real => source.define("STORE_REAL", 1),
            StoreForm::Pairs => source.define("STORE_PAIRS", 1),
        }
    }
}

/// A finite number as OpenCL C has it.
pub(crate) fn literal(value: f32) -> String {
    format!("({value:e}f)")
}
