use super::refused;
use crate::Result;

/// Where the elements of a tensor lie in a buffer: element (i, j, ...) at
/// `offset + i * strides[0] + j * strides[1] + ...`. All in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Elements in each dimension.
    pub shape: Vec<usize>,
    /// Elements from one index to the next in each dimension.
    pub strides: Vec<usize>,
    /// The first element.
    pub offset: usize,
}

impl Layout {
    /// The first `len` elements, one after the other.
    #[must_use]
    pub fn vector(len: usize) -> Self {
        Self {
            shape: vec![len],
            strides: vec![1],
            offset: 0,
        }
    }

    /// A column-major matrix, columns `ld` elements apart, as in rocBLAS.
    #[must_use]
    pub fn matrix(rows: usize, cols: usize, ld: usize) -> Self {
        Self {
            shape: vec![rows, cols],
            strides: vec![1, ld],
            offset: 0,
        }
    }

    /// The same, from element `offset` on.
    #[must_use]
    pub fn at(self, offset: usize) -> Self {
        Self { offset, ..self }
    }

    /// The place of every element, each once although several may share it.
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize)) {
        if self.is_empty() {
            return;
        }
        // Along a stride of 0 all elements are one.
        let ways: Vec<(usize, usize)> = self
            .shape
            .iter()
            .copied()
            .zip(self.strides.iter().copied())
            .filter(|(_, stride)| *stride != 0)
            .collect();
        let mut index = vec![0; ways.len()];
        let mut place = self.offset;
        loop {
            visit(place);
            let mut dimension = ways.len();
            loop {
                let Some(next) = dimension.checked_sub(1) else {
                    return;
                };
                dimension = next;
                let (count, stride) = ways[dimension];
                index[dimension] += 1;
                place += stride;
                if index[dimension] < count {
                    break;
                }
                place -= count * stride;
                index[dimension] = 0;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The number of elements up to the last one, counted from the buffer's first.
    pub(super) fn reach(&self) -> Result<usize> {
        if self.shape.len() != self.strides.len() {
            return Err(refused(format!(
                "{} strides for {} dimensions; pass one stride for each dimension",
                self.strides.len(),
                self.shape.len()
            )));
        }
        // A tensor's numbers have a sign, also those that no element depends on.
        let mut numbers = self.shape.iter().chain(&self.strides).chain([&self.offset]);
        if let Some(large) = numbers.find(|number| i64::try_from(**number).is_err()) {
            return Err(refused(format!(
                "a size, stride or offset of {large} exceeds 63 bits; pass the tensor's own"
            )));
        }
        if self.is_empty() {
            return Ok(self.offset);
        }
        let mut last = Some(self.offset);
        for (&count, &stride) in self.shape.iter().zip(&self.strides) {
            let way = (count - 1).checked_mul(stride);
            last = last.zip(way).and_then(|(last, way)| last.checked_add(way));
        }
        last.and_then(|last| last.checked_add(1))
            .filter(|&reach| i64::try_from(reach).is_ok())
            .ok_or_else(|| refused(format!("the strides of {:?} overflow", self.shape)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_would_turn_negative_are_refused_though_no_element_depends_on_them() {
        for layout in [Layout::matrix(3, 1, usize::MAX), Layout::matrix(0, usize::MAX, 1)] {
            let error = layout.reach().expect_err("beyond 63 bits").to_string();
            assert!(error.contains("exceeds 63 bits"), "{error}");
        }
    }

    #[test]
    fn every_place_of_a_layout_is_visited() {
        let places = |layout: Layout| {
            let mut places = Vec::new();
            layout.for_each(|place| places.push(place));
            places
        };
        assert_eq!(places(Layout::matrix(2, 3, 4).at(7)), [7, 11, 15, 8, 12, 16]);
        assert_eq!(places(Layout::matrix(2, 0, 4)), [0; 0]);
        let scalar = Layout {
            shape: vec![],
            strides: vec![],
            offset: 3,
        };
        assert_eq!(places(scalar), [3]);
        let broadcast = Layout {
            shape: vec![usize::MAX >> 1, 2],
            strides: vec![0, 1],
            offset: 0,
        };
        assert_eq!(places(broadcast), [0, 1]);
    }

    #[test]
    fn a_layout_reaches_to_its_last_element() {
        let reach = |layout: Layout| layout.reach().expect("it fits");
        assert_eq!(reach(Layout::vector(5)), 5);
        assert_eq!(reach(Layout::matrix(2, 3, 4).at(7)), 7 + 8 + 2);
        assert_eq!(reach(Layout::matrix(2, 0, 4).at(7)), 7);
        let scalar = Layout {
            shape: vec![],
            strides: vec![],
            offset: 3,
        };
        assert_eq!(reach(scalar), 4);
        assert!(Layout::matrix(2, usize::MAX, 4).reach().is_err());
        let odd = Layout {
            shape: vec![2],
            strides: vec![],
            offset: 0,
        };
        assert!(odd.reach().is_err());
    }
}
