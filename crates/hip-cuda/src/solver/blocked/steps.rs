//! What a blocked factor and the inverse from it multiply, in tiles of a lower triangle: plain numbers, the same on
//! every device.

/// Rows and columns of a tile, as `cholesky.hip` has them.
pub const TILE: usize = 32;

/// Memory with a square matrix of whole tiles for each of a batch, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// What the caller's triangles are copied to.
    Packed,
    /// Where a factor or the triangle of an inverse comes to be.
    Result,
    /// The inverse of one tile of each matrix.
    Tile,
}

/// Matrices of a product: where the first begins, in elements, and how far the next one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub room: Room,
    pub offset: usize,
    pub ld: usize,
    pub stride: usize,
}

/// `c = ± a b`, or `c = c ± a b`, with `a` or `b` conjugated and transposed, for `count` matrices each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    pub a: Place,
    pub b: Place,
    pub c: Place,
    pub turned: (bool, bool),
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub negative: bool,
    pub added: bool,
    pub count: usize,
}

/// A step of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The factor of this tile of the diagonal, and its inverse.
    FactorTile(usize),
    /// A product.
    Multiply(Product),
}

/// Matrices of `tiles` times `tiles` tiles.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    pub tiles: usize,
    pub batch: usize,
}

impl Grid {
    /// Rows and columns.
    pub const fn size(self) -> usize {
        self.tiles * TILE
    }

    /// Elements of a matrix.
    pub const fn elements(self) -> usize {
        self.size() * self.size()
    }

    const fn offset(self, row: usize, column: usize) -> usize {
        (row + column * self.size()) * TILE
    }

    /// The part of every matrix that begins with this tile.
    const fn part(self, room: Room, row: usize, column: usize) -> Place {
        Place {
            room,
            offset: self.offset(row, column),
            ld: self.size(),
            stride: self.elements(),
        }
    }

    /// The Cholesky factors of `Packed` in the lower triangles of `Result`: column of tiles by column, what is behind
    /// it brought up to date each time.
    pub fn factor(self) -> Vec<Step> {
        let mut steps = Vec::new();
        for done in 0..self.tiles {
            steps.push(Step::FactorTile(done));
            let rest = (self.tiles - done - 1) * TILE;
            if rest == 0 {
                break;
            }
            let below = self.part(Room::Result, done + 1, done);
            steps.push(Step::Multiply(Product {
                a: self.part(Room::Packed, done + 1, done),
                b: Place {
                    room: Room::Tile,
                    offset: 0,
                    ld: TILE,
                    stride: TILE * TILE,
                },
                c: below,
                turned: (false, true),
                m: rest,
                n: TILE,
                k: TILE,
                negative: false,
                added: false,
                count: self.batch,
            }));
            steps.push(Step::Multiply(Product {
                a: below,
                b: below,
                c: self.part(Room::Packed, done + 1, done + 1),
                turned: (false, true),
                m: rest,
                n: rest,
                k: TILE,
                negative: true,
                added: true,
                count: self.batch,
            }));
        }
        steps
    }

    /// Inverts the lower triangles in `Packed`, whose tiles on the diagonal are inverted already, and multiplies each
    /// by itself: `Result` is `X^H X` of the inverses `X`. Neighbours on the diagonal are joined until one is left: the
    /// inverse of `[A 0; B C]` has `-C^-1 B A^-1` in the place of `B`.
    pub fn inverse(self) -> Vec<Product> {
        let mut products = Vec::new();
        let mut width = 1;
        while width < self.tiles {
            let regular = self.tiles / (2 * width);
            let step = 2 * width * TILE * (self.size() + 1);
            if regular <= self.batch {
                for pair in 0..regular {
                    self.join(&mut products, 2 * width * pair, width, width, |place| place);
                }
            } else {
                // fewer calls: all of a matrix at once
                for matrix in 0..self.batch {
                    let first = products.len();
                    self.join(&mut products, 0, width, width, |mut place| {
                        place.offset += matrix * self.elements();
                        place.stride = step;
                        place
                    });
                    for product in &mut products[first..] {
                        product.count = regular;
                    }
                }
            }
            let last = 2 * width * regular;
            if last + width < self.tiles {
                let height = self.tiles - last - width;
                self.join(&mut products, last, width, height, |place| place);
            }
            width *= 2;
        }
        let all = self.part(Room::Packed, 0, 0);
        products.push(Product {
            a: all,
            b: all,
            c: self.part(Room::Result, 0, 0),
            turned: (true, false),
            m: self.size(),
            n: self.size(),
            k: self.size(),
            negative: false,
            added: false,
            count: self.batch,
        });
        products
    }

    /// Joins the inverses of `width` tiles from `first` on and of the `height` tiles behind them.
    fn join(
        self,
        products: &mut Vec<Product>,
        first: usize,
        width: usize,
        height: usize,
        moved: impl Fn(Place) -> Place,
    ) {
        let part = |room, row, column| moved(self.part(room, row, column));
        let middle = first + width;
        let (corner, between) = (part(Room::Packed, middle, first), part(Room::Result, middle, first));
        let half = Product {
            a: corner,
            b: part(Room::Packed, first, first),
            c: between,
            turned: (false, false),
            m: height * TILE,
            n: width * TILE,
            k: width * TILE,
            negative: false,
            added: false,
            count: self.batch,
        };
        products.push(half);
        products.push(Product {
            a: part(Room::Packed, middle, middle),
            b: between,
            c: corner,
            k: height * TILE,
            negative: true,
            ..half
        });
    }
}
