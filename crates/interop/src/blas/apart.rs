use std::ops::Range;

use crate::{Error, Result};

/// The bytes from the first element of an operand to its last, by HIP's address. Public in name only:
/// the crate does not export this module.
#[derive(Clone, Debug)]
pub struct Extent {
    argument: &'static str,
    bytes: Range<usize>,
}

impl Extent {
    /// Of `len` elements.
    pub(crate) fn new<T>(argument: &'static str, begin: *const T, len: usize) -> Self {
        let begin = begin.addr();
        Self {
            argument,
            // What a slice holds does not wrap.
            bytes: begin..begin.saturating_add(len.saturating_mul(size_of::<T>())),
        }
    }

    fn meets(&self, other: &Self) -> bool {
        // An operand without elements lies nowhere.
        !self.bytes.is_empty()
            && !other.bytes.is_empty()
            && self.bytes.start < other.bytes.end
            && other.bytes.start < self.bytes.end
    }
}

/// Elements from the first to the last of a batch, if its sizes are valid: the library checks them.
pub(crate) fn span(rows: usize, cols: usize, ld: usize, stride: usize, count: usize) -> usize {
    if rows == 0 || cols == 0 || count == 0 {
        return 0;
    }
    stride
        .saturating_mul(count - 1)
        .saturating_add(ld.saturating_mul(cols - 1))
        .saturating_add(rows)
}

/// Refuses an output that lies where an input does. Borrows exclude that for one shared buffer; memory of other code
/// may be adopted twice.
pub(crate) fn check_apart(call: &'static str, output: &Extent, inputs: &[&Extent]) -> Result<()> {
    for input in inputs {
        if output.meets(input) {
            return Err(Error::OperandsOverlap {
                call,
                output: output.argument,
                input: input.argument,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(begin: usize, len: usize) -> Extent {
        Extent::new("x", std::ptr::without_provenance::<u32>(begin), len)
    }

    #[test]
    fn operands_that_share_no_byte_are_apart() {
        let output = at(0x100, 4);
        let inputs = [at(0x110, 4), at(0xF0, 4), at(0x104, 0)];
        check_apart("gemm", &output, &inputs.each_ref()).expect("neighbours");
        assert!(check_apart("gemm", &output, &[&at(0x10C, 1)]).is_err());
        assert!(check_apart("gemm", &output, &[&at(0xF0, 5)]).is_err());
        assert!(check_apart("gemm", &at(0, 0), &[&at(0, 1)]).is_ok());
    }

    #[test]
    fn a_batch_reaches_from_its_first_element_to_its_last() {
        assert_eq!(span(2, 3, 4, 20, 2), 20 + 8 + 2);
        assert_eq!(span(2, 3, 4, 0, 7), 10);
        assert_eq!(span(0, 3, 4, 20, 2), 0);
        assert_eq!(span(2, usize::MAX, 4, 20, 2), usize::MAX);
    }
}
