//! A plan as a sequence of complex transforms.

use clmgr::{C32, Context};

use crate::Direction;
use crate::chirp::Chirp;
use crate::ends::{Load, Store};
use crate::route::Route;
use crate::scratch;
use crate::spec::{Kind, Layout, Side, Spec};
use crate::way::Way;

/// The complex transforms that make up a plan's, in order.
#[derive(Debug)]
pub(crate) struct Recipe {
    pub legs: Vec<Leg>,
    /// Whether the output may hold what the last leg's kernels hand on.
    through_out: bool,
    /// The kernel that turns the spectrum of pairs, in the output, into that of the real numbers.
    pub completion: Option<Completion>,
}

/// A complex transform of each row.
#[derive(Debug)]
pub(crate) struct Leg {
    pub len: usize,
    pub direction: Direction,
    pub way: Way,
    pub load: Load,
    pub store: Store,
}

/// The last kernel of a real transform of even length.
#[derive(Debug)]
pub(crate) struct Completion {
    /// Half the real transform's length.
    pub half: usize,
    pub layout: Layout,
    pub scale: f32,
}

/// The scratch memory of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scratch {
    /// The rows that are transformed at a time.
    pub rows: usize,
    /// The parts of the memory, each for one kernel to write and another one to read.
    pub parts: usize,
    /// Complex numbers of a part.
    pub part: usize,
}

impl Scratch {
    /// In complex numbers.
    pub fn len(&self) -> usize {
        self.parts * self.part
    }
}

impl Recipe {
    /// Of a plan that goes this way. Its complex transforms go the `inner` one, another one only if it is a convolution.
    pub fn new(spec: &Spec, way: Way, inner: Way, direction: Direction) -> Self {
        let (mut load, mut store) = (Load::of(spec), Store::of(spec));
        let len = spec.transform();
        let leg = |len, direction, load, store| Leg {
            len,
            direction,
            way: inner,
            load,
            store,
        };
        let (legs, is_direct) = match way {
            Way::Bluestein { convolution } => {
                let signal = |scale| Chirp::Signal { len, direction, scale };
                load.chirp = Some(signal(1.0));
                let mut product = Store::plain(convolution);
                product.chirp = Some(Chirp::Spectrum {
                    len,
                    convolution,
                    direction,
                });
                store.chirp = Some(signal(store.scale));
                store.scale = 1.0;
                let there = leg(convolution, Direction::Forward, load, product);
                let back = leg(convolution, Direction::Inverse, Load::plain(convolution), store);
                (vec![there, back], false)
            }
            _ => (vec![leg(len, direction, load, store)], true),
        };
        let is_whole = is_direct && spec.kind == Kind::Complex;
        let pairs = spec.kind == Kind::RealToComplex && spec.is_even();
        Self {
            through_out: is_whole && spec.output.is_dense(spec.batch),
            legs,
            completion: pairs.then_some(Completion {
                half: spec.len / 2,
                layout: spec.output.layout,
                scale: spec.output_scale,
            }),
        }
    }

    /// The kernels, one behind the other.
    pub fn passes(&self) -> usize {
        let kernels = self.legs.iter().map(|leg| leg.way.kernels(leg.len));
        kernels.sum::<usize>() + usize::from(self.completion.is_some())
    }

    /// The bytes of a row that the kernels read and write.
    pub fn traffic_of_row(&self, spec: &Spec) -> usize {
        let side = |side: &Side| side.len * side.number.bytes();
        let completed = self.completion.as_ref().map_or(0, |_| 2 * side(&spec.output));
        let handed_on: usize = self.legs.iter().map(|leg| 2 * leg.way.kernels(leg.len) * leg.len).sum();
        let (first, last) = (&self.legs[0], &self.legs[self.legs.len() - 1]);
        (handed_on - first.len - last.len) * size_of::<C32>() + side(&spec.input) + side(&spec.output) + completed
    }

    /// The places of each leg's data.
    pub fn routes(&self, in_place: bool) -> Vec<Route> {
        let last = self.legs.len() - 1;
        let routes = self.legs.iter().enumerate();
        routes
            .map(|(index, leg)| {
                let through = index < last || self.through_out;
                Route::of(leg.way, leg.way.kernels(leg.len), in_place && last == 0, through)
            })
            .collect()
    }

    /// As much scratch memory as a transform should keep to.
    pub fn scratch(&self, context: &Context, batch: usize, in_place: bool) -> Scratch {
        let between = self.legs.len() - 1;
        let routes = self.routes(in_place).into_iter();
        let parts = between + routes.map(|route| route.scratches).max().unwrap_or(0);
        let row = self.legs.iter().map(|leg| leg.len).max().unwrap_or(1);
        let rows = match row * parts * size_of::<C32>() {
            0 => batch,
            bytes => (scratch::bytes(context) / bytes).clamp(1, batch),
        };
        Scratch {
            rows,
            parts,
            part: row * rows,
        }
    }
}
