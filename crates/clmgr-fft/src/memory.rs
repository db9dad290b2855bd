//! Device memory that a plan passes next to its caller's data.

use bytemuck::Pod;
use clmgr::{Arg, Context, Queue, RegularBuffer, Result, SvmBuffer, SvmCapabilities, SvmView};

/// How a caller passes its data. NVIDIA accepts only one of the two in a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Object,
    Svm,
}

/// Memory that can be passed in the caller's form.
pub(crate) enum Memory<T: 'static> {
    Regular(RegularBuffer<T>),
    Shared {
        buffer: SvmBuffer<T>,
        view: SvmView<'static, T>,
    },
}

impl<T: Pod> Memory<T> {
    pub fn new(context: &Context, len: usize) -> Result<Self> {
        if context.device().svm().contains(SvmCapabilities::COARSE) {
            let buffer = SvmBuffer::coarse(context, len)?;
            // SAFETY: only kernels receive the view.
            let view = unsafe { buffer.unbound_view() }?;
            Ok(Self::Shared { buffer, view })
        } else {
            Ok(Self::Regular(RegularBuffer::new(context, len)?))
        }
    }

    pub fn filled(context: &Context, queue: &Queue, data: &[T]) -> Result<Self> {
        let mut memory = Self::new(context, data.len())?;
        match &mut memory {
            Self::Regular(buffer) => buffer.write(queue, data)?,
            Self::Shared { buffer, .. } => buffer.write(queue, data)?,
        }
        Ok(memory)
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Regular(buffer) => buffer.len(),
            Self::Shared { buffer, .. } => buffer.len(),
        }
    }

    /// Its bytes.
    pub fn read(&self, queue: &Queue) -> Result<Vec<u8>> {
        let mut content = vec![T::zeroed(); self.len()];
        match self {
            Self::Regular(buffer) => buffer.read(queue, &mut content)?,
            Self::Shared { buffer, .. } => buffer.read(queue, &mut content)?,
        }
        Ok(bytemuck::cast_slice(&content).to_vec())
    }

    pub fn arg(&self, form: Form) -> Arg<'_> {
        match (self, form) {
            (Self::Regular(buffer), _) => buffer.arg(),
            (Self::Shared { buffer, .. }, Form::Svm) => buffer.arg(),
            (Self::Shared { view, .. }, Form::Object) => view.arg(),
        }
    }
}
