use rocblas_sys::rocblas_status;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong. Each is one line that names the call, the argument and what it has to be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The loaded library does not have the function.
    #[error("`{symbol}` is missing from the loaded {library}; install a ROCm release that has it (5.7 or later)")]
    MissingSymbol {
        /// The C name.
        symbol: &'static str,
        /// rocBLAS or rocSOLVER.
        library: &'static str,
    },

    /// The library has no rocSOLVER table.
    #[error("{call}: no rocSOLVER library is loaded; install rocsolver of the same ROCm release as rocBLAS")]
    NoSolver {
        /// The call that needs it.
        call: &'static str,
    },

    /// A rocBLAS or rocSOLVER function returned an error status.
    #[error("`{call}` failed: {name} ({code}){remedy}")]
    Status {
        /// The call with its key arguments.
        call: String,
        /// The status' name.
        name: &'static str,
        /// The status.
        code: u32,
        /// What to do, with the separator before it; empty if nothing is known.
        remedy: &'static str,
    },

    /// The leading dimension is less than the number of rows (or is 0).
    #[error("a matrix of {rows} rows needs a leading dimension of at least {}; it is {ld}", (*rows).max(1))]
    LeadingDimension {
        /// Rows of the matrix.
        rows: usize,
        /// The leading dimension.
        ld: usize,
    },

    /// The increment of a vector is 0: all its elements would be one.
    #[error("a vector cannot have increment 0; use 1, or a negative one to run backwards")]
    Increment,

    /// An operand does not fit its memory.
    #[error("{call}: {argument}: {cause}")]
    Operand {
        /// The call that refused it.
        call: &'static str,
        /// The argument.
        argument: &'static str,
        /// What does not fit.
        cause: Box<Error>,
    },

    /// The output of a call lies where another operand does.
    #[error("{call}: {output} shares memory with {input}; use a separate buffer for the result (inputs may share one)")]
    OperandsOverlap {
        /// The call that refused it.
        call: &'static str,
        /// What is written.
        output: &'static str,
        /// What is read, or written too.
        input: &'static str,
    },

    /// The elements lie less aligned than they are large.
    #[error("elements of {needed} bytes cannot begin at {address:#x}; begin at a multiple of their size")]
    Alignment {
        /// Where the memory begins.
        address: usize,
        /// The size of an element in bytes.
        needed: usize,
    },

    /// A workspace that rocBLAS cannot lay its arrays in.
    #[error(
        "a workspace cannot begin at {address:#x}; begin at a multiple of 256 bytes, as memory that HIP allocates does"
    )]
    WorkspaceAlignment {
        /// Where the memory begins.
        address: usize,
    },

    /// The memory is too short for the operand.
    #[error("{what} needs {needed} elements; the memory has {len}")]
    TooShort {
        /// The matrix or batch, with its sizes.
        what: String,
        /// Elements from the memory's first to the last that is used.
        needed: usize,
        /// Elements of the memory.
        len: usize,
    },

    /// A size needs a function with 64-bit sizes, which the loaded library does not have yet.
    #[error(
        "{what} = {value} does not fit 32 bits, and `{symbol}` is missing from the loaded rocBLAS; install ROCm {since} or later, or \
         split the problem"
    )]
    No64Bit {
        /// The C name.
        symbol: &'static str,
        /// Which size.
        what: &'static str,
        /// Its value.
        value: i64,
        /// The release that brought it.
        since: &'static str,
    },

    /// A size does not fit the library's integers.
    #[error("{what} = {value} does not fit the library's {bits}-bit sizes; split the problem")]
    TooLarge {
        /// Which size.
        what: &'static str,
        /// Its value.
        value: usize,
        /// Bits of the library's type.
        bits: u32,
    },

    /// Matrices of an output batch share elements.
    #[error(
        "matrices {first} and {second} of the output batch share elements: stride {stride}, {rows} x {cols} with leading dimension {ld}"
    )]
    Overlap {
        /// The lower index.
        first: usize,
        /// The higher index.
        second: usize,
        /// Stride of the batch.
        stride: usize,
        /// Rows of a matrix.
        rows: usize,
        /// Columns of a matrix.
        cols: usize,
        /// Leading dimension of a matrix.
        ld: usize,
    },

    /// Matrices of an output batch share elements.
    #[error(
        "matrices {first} and {second} of the output batch share elements: offsets {} and {}, {rows} x {cols} with leading dimension {ld}",
        offsets.0, offsets.1
    )]
    OverlapAt {
        /// The lower index.
        first: usize,
        /// The higher index.
        second: usize,
        /// Where the two begin, in elements from the beginning of the lowest matrix on.
        offsets: (usize, usize),
        /// Rows of a matrix.
        rows: usize,
        /// Columns of a matrix.
        cols: usize,
        /// Leading dimension of a matrix.
        ld: usize,
    },

    /// An argument has the wrong shape.
    #[error("{call}: {argument} is {found}, but {expected} is needed")]
    Shape {
        /// The call that refused it.
        call: &'static str,
        /// The argument.
        argument: &'static str,
        /// What it is.
        found: String,
        /// What it has to be.
        expected: String,
    },

    /// An array's elements are in another order in memory than a matrix's.
    #[error(
        "{call}: the array of shape {shape:?} has strides {strides:?}, but column-major ones without gaps are needed; \
         use {instead}, which reorders in host memory, or the array's transpose"
    )]
    ArrayLayout {
        /// The call that refused it.
        call: &'static str,
        /// Its rows and columns.
        shape: Vec<usize>,
        /// Its strides in elements.
        strides: Vec<isize>,
        /// The call that takes it.
        instead: &'static str,
    },

    /// An option that the call does not have.
    #[error("{call}: {argument} cannot be {found}; use {expected}")]
    Unsupported {
        /// The call that refused it.
        call: &'static str,
        /// The argument.
        argument: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        expected: &'static str,
    },

    /// A slice was taken for another stream than the handle's.
    #[error(
        "{call}: {argument} was taken for another stream; give the call the memory itself, or a slice for the handle's stream"
    )]
    WrongStream {
        /// The call that refused it.
        call: &'static str,
        /// The argument.
        argument: &'static str,
    },

    /// A stream belongs to another HIP runtime than the library's, perhaps to another platform.
    #[error(
        "{call}: the stream belongs to another HIP runtime than this rocBLAS; use a stream of the runtime that the library is for"
    )]
    OtherRuntime {
        /// The call that refused it.
        call: &'static str,
    },

    /// The factorisation stopped: the matrix is not positive definite.
    #[error(
        "the matrix is not positive definite: its leading minor of order {minor} is not positive; check the data, or add to the diagonal"
    )]
    NotPositiveDefinite {
        /// Order of the first such minor, from 1.
        minor: usize,
    },

    /// The matrix has no inverse.
    #[error("the matrix is singular: element ({pivot}, {pivot}) of its factor is zero")]
    Singular {
        /// Row and column of the first zero pivot, from 1.
        pivot: usize,
    },

    /// A matrix of a batch failed; the others may be fine.
    #[error("matrix {matrix} of {count}: {cause}")]
    InBatch {
        /// Index of the first matrix that failed, from 0.
        matrix: usize,
        /// Matrices in the batch.
        count: usize,
        /// How it failed.
        cause: Box<Error>,
    },

    /// The result of a call that only queried its workspace size.
    #[error("{call}: {what} was not computed, because its call was inside `workspace_needed`; make that call outside")]
    NotComputed {
        /// The call that refused it.
        call: &'static str,
        /// The missing result.
        what: &'static str,
    },

    /// A call that cannot be part of a graph.
    #[error("{call} cannot be captured: {reason}")]
    Captured {
        /// The call.
        call: &'static str,
        /// Why, and what to do.
        reason: &'static str,
    },

    /// The library returned something unintelligible.
    #[error("`{call}` answered {answer}, which has no documented meaning")]
    Answer {
        /// The call.
        call: &'static str,
        /// What it returned.
        answer: i64,
    },

    /// A HIP call failed, or the owner of an operand's memory refused access ([`hip::Error::Memory`]).
    #[error(transparent)]
    Hip(#[from] hip::Error),
}

impl Error {
    /// The status that rocBLAS or rocSOLVER returned, if the error is a failed call of theirs.
    #[must_use]
    pub fn code(&self) -> Option<rocblas_status> {
        match self {
            Self::Status { code, .. } => Some(rocblas_status(*code)),
            _ => None,
        }
    }
}
