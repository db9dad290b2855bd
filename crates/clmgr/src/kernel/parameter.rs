//! What the compiler reports about a kernel's parameters.

use super::arg::Arg;

/// What the compiler kept about a parameter; `Unknown` where it kept nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    Unknown,
    /// Memory, and whether it is declared `const` or `constant` where that is known.
    Pointer {
        constant: Option<bool>,
    },
    Local,
    /// A value, with its size if the type is a built-in OpenCL type.
    Value(Option<usize>),
}

impl Parameter {
    pub(super) fn accepts(self, arg: &Arg<'_>) -> std::result::Result<(), String> {
        match (self, arg) {
            (_, Arg::Mem(object)) if object.is_null() => Err("a null buffer".to_owned()),
            (_, Arg::Svm(pointer)) if pointer.is_null() => Err("a null pointer".to_owned()),
            (_, Arg::Bytes([])) => Err("a value of no bytes".to_owned()),
            (_, Arg::Local(0)) => Err("local memory of no bytes".to_owned()),
            (Self::Unknown, _)
            | (Self::Pointer { .. }, Arg::Mem(_) | Arg::Svm(_))
            | (Self::Local, Arg::Local(_))
            | (Self::Value(None), Arg::Bytes(_)) => Ok(()),
            (Self::Value(Some(size)), Arg::Bytes(bytes)) if bytes.len() == size => Ok(()),
            (Self::Value(Some(size)), Arg::Bytes(bytes)) => {
                Err(format!("got a value of {} bytes, it takes {size}", bytes.len()))
            }
            (Self::Pointer { .. }, _) => Err("it takes a buffer or an SVM pointer".to_owned()),
            (Self::Local, _) => Err("it takes local memory".to_owned()),
            (Self::Value(_), _) => Err("it takes a value".to_owned()),
        }
    }
}

/// The size of a built-in OpenCL C scalar or vector type.
pub(super) fn size_of_type(name: &str) -> Option<usize> {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let lanes = match &name[base.len()..] {
        "" => 1,
        "2" => 2,
        "3" | "4" => 4,
        "8" => 8,
        "16" => 16,
        _ => return None,
    };
    let scalar = match base {
        "char" | "uchar" | "unsigned char" => 1,
        "short" | "ushort" | "unsigned short" | "half" => 2,
        "int" | "uint" | "unsigned int" | "float" => 4,
        "long" | "ulong" | "unsigned long" | "double" => 8,
        _ => return None,
    };
    Some(scalar * lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_have_opencls_sizes() {
        for (name, size) in [
            ("float", 4),
            ("float2", 8),
            ("int3", 16),
            ("ulong16", 128),
            ("uchar", 1),
            ("half8", 16),
        ] {
            assert_eq!(size_of_type(name), Some(size), "{name}");
        }
        for name in ["size_t", "params", "float5", "image2d_t", ""] {
            assert_eq!(size_of_type(name), None, "{name}");
        }
    }

    #[test]
    fn arguments_of_the_wrong_kind_or_size_are_refused() {
        let svm = Arg::Svm(std::ptr::dangling());
        assert!(Parameter::Pointer { constant: None }.accepts(&svm).is_ok());
        assert!(Parameter::Local.accepts(&svm).is_err());
        assert!(Parameter::Value(Some(4)).accepts(&Arg::scalar(&1.0f64)).is_err());
        assert!(Parameter::Value(Some(4)).accepts(&Arg::scalar(&1.0f32)).is_ok());
        assert!(Parameter::Value(None).accepts(&Arg::scalar(&1.0f64)).is_ok());
        assert!(Parameter::Unknown.accepts(&Arg::Mem(std::ptr::null_mut())).is_err());
        assert!(Parameter::Local.accepts(&Arg::Local(0)).is_err());
    }
}
