/// Which API moves bytes from and to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Cl,
    Hip,
}
