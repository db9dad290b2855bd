//! The options of a plan.

use clmgr::{Context, ProgramCache};

use crate::error::Result;
use crate::plan::Plan;
use crate::spec::{Kind, Layout, Options};
use crate::tuning::Tuning;
use crate::way::Way;

/// The options of a [`Plan`], from [`Plan::builder`]. What is not set has the default.
///
/// The input's numbers are multiplied by window and scale while the transform's first kernel reads them, the result by its
/// scale while the last one writes it, and zeros behind a short row are not read. All of this costs no pass over memory.
///
/// | option | default | unit |
/// |---|---|---|
/// | [`batch`](Self::batch) | 1 | rows |
/// | [`real_to_complex`](Self::real_to_complex), [`complex_to_real`](Self::complex_to_real) | complex to complex | |
/// | [`input_len`](Self::input_len) | all that the transform takes | numbers of the input |
/// | [`input`](Self::input), [`output`](Self::output) | rows one behind the other | numbers of the input, of the output |
/// | [`window`](Self::window) | none | a factor for each number of an input row |
/// | [`scale_input`](Self::scale_input), [`scale_output`](Self::scale_output) | 1 | |
/// | [`way`](Self::way), [`tuning`](Self::tuning) | what suits the device | |
///
/// Radar pulses of 3000 samples, windowed and padded to 4096, with a normalised spectrum:
///
/// ```
/// use clmgr::{Context, Manager, ProgramCache};
/// use clmgr_fft::Plan;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new(&Manager::load()?.devices().remove(0))?;
/// let hann: Vec<f32> = (0..3000).map(|i| (std::f32::consts::PI * i as f32 / 3000.0).sin().powi(2)).collect();
/// let plan = Plan::builder(4096)
///     .batch(64)
///     .input_len(3000)
///     .window(&hann)
///     .scale_output(1.0 / 4096.0)
///     .build(&context, &ProgramCache::in_memory(&context))?;
/// assert_eq!((plan.input().extent, plan.output().extent), (64 * 3000, 64 * 4096));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    pub(crate) options: Options,
    pub(crate) way: Option<Way>,
    pub(crate) tuning: Tuning,
}

impl Builder {
    pub(crate) fn new(len: usize) -> Self {
        Self {
            options: Options {
                len,
                batch: 1,
                kind: Kind::Complex,
                input_len: None,
                input: None,
                output: None,
                window: None,
                input_scale: 1.0,
                output_scale: 1.0,
            },
            way: None,
            tuning: Tuning::default(),
        }
    }

    fn set(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// The number of rows to transform.
    pub fn batch(self, batch: usize) -> Self {
        self.set(|options| options.batch = batch)
    }

    /// What is read and written.
    pub fn kind(self, kind: Kind) -> Self {
        self.set(|options| options.kind = kind)
    }

    /// From `len` real numbers to the first `len / 2 + 1` complex numbers of their spectrum; the others are their mirror.
    pub fn real_to_complex(self) -> Self {
        self.kind(Kind::RealToComplex)
    }

    /// From the first `len / 2 + 1` complex numbers of a spectrum to `len` real numbers: the inverse of
    /// [`real_to_complex`](Self::real_to_complex), times `len` unless scaled.
    ///
    /// The imaginary part of the first number, and for an even length of the last one, counts as zero, which it is in a
    /// real signal's spectrum.
    pub fn complex_to_real(self) -> Self {
        self.kind(Kind::ComplexToReal)
    }

    /// The numbers of an input row, at most as many as the transform takes: `len`, or `len / 2 + 1` from complex to real.
    /// What is missing counts as zero and is not read.
    pub fn input_len(self, input_len: usize) -> Self {
        self.set(|options| options.input_len = Some(input_len))
    }

    /// Where the input is, in numbers of its type. Rows may overlap: a distance below `input_len` gives a spectrogram.
    pub fn input(self, layout: Layout) -> Self {
        self.set(|options| options.input = Some(layout))
    }

    /// Where the result goes, in numbers of its type. Rows must not share a place. Between the numbers nothing is written.
    pub fn output(self, layout: Layout) -> Self {
        self.set(|options| options.output = Some(layout))
    }

    /// The factors by which the numbers of an input row are multiplied, one for each.
    pub fn window(self, window: &[f32]) -> Self {
        self.set(|options| options.window = Some(window.into()))
    }

    /// The factor by which the input is multiplied, in addition to the window.
    pub fn scale_input(self, scale: f32) -> Self {
        self.set(|options| options.input_scale = scale)
    }

    /// The factor by which the result is multiplied, e.g. `1.0 / len as f32` for an inverse transform.
    pub fn scale_output(self, scale: f32) -> Self {
        self.set(|options| options.output_scale = scale)
    }

    /// The way of the transform, in place of the one that suits the device.
    pub fn way(self, way: Way) -> Self {
        Self { way: Some(way), ..self }
    }

    /// Another shape of the work-groups than the rule's.
    pub fn tuning(self, tuning: Tuning) -> Self {
        Self { tuning, ..self }
    }

    /// Plans the transforms.
    ///
    /// The kernels of a direction are compiled on its first use; [`Plan::prepare`] does so earlier.
    ///
    /// # Errors
    ///
    /// [`Error::Option`](crate::Error::Option) with the option's name and the remedy;
    /// [`Zero`](clmgr::Error::Zero) for a length, an input length or a batch of 0;
    /// [`TooLarge`](clmgr::Error::TooLarge) for a length from 2<sup>32</sup> on, or data that does not fit into the device's
    /// memory; [`ContextMismatch`](clmgr::Error::ContextMismatch) for a cache of another context;
    /// [`NotSupported`](clmgr::Error::NotSupported) if the way does not take this length on this device, or the device no
    /// such work-groups.
    pub fn build(&self, context: &Context, programs: &ProgramCache) -> Result<Plan> {
        Plan::build(self, context, programs)
    }
}
