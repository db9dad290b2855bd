use crate::Result;
use std::collections::VecDeque;

/// A queue or stream that was given access to memory.
#[derive(Clone)]
pub(crate) enum User {
    Cl(clmgr::Queue),
    Hip(hip::Stream),
}

impl User {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Cl(a), Self::Cl(b)) => a.raw() == b.raw(),
            (Self::Hip(a), Self::Hip(b)) => a.raw() == b.raw(),
            _ => false,
        }
    }

    /// Blocks until everything that was given to the queue or stream so far has run.
    pub(crate) fn wait(&self) -> Result<()> {
        match self {
            Self::Cl(queue) => queue.finish().map_err(Into::into),
            Self::Hip(stream) => stream.synchronize().map_err(Into::into),
        }
    }
}

/// What a user may do with the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Who may still be working on some memory.
///
/// A use is entered when access is *granted*, not when a guard is dropped, so a guard that is
/// leaked leaves an entry that a later user waits for: it costs time, never order.
#[derive(Default)]
pub(crate) struct Uses(VecDeque<(User, Access)>);

impl Uses {
    /// Waits for every other user whose access conflicts with `access`, then enters `user`.
    ///
    /// Two readers never conflict. One queue or stream is in order, so it never waits for itself.
    pub(crate) fn admit(&mut self, user: &User, access: Access) -> Result<()> {
        self.wait_where(|other, theirs| {
            !other.is_same(user) && (access == Access::Write || theirs == Access::Write)
        })?;
        match self.0.iter_mut().find(|(other, _)| other.is_same(user)) {
            Some((_, theirs)) if access == Access::Write => *theirs = Access::Write,
            Some(_) => {}
            None => self.0.push_back((user.clone(), access)),
        }
        Ok(())
    }

    /// As [`admit`](Self::admit) without entering `user`: these are the users of another view of the
    /// same bytes. OpenCL orders the commands of one queue by the objects and addresses they use,
    /// and may take two views for strangers (clr: rocclr/device/rocm/rocvirtual.cpp, the
    /// dependency tracking of dispatches), so that here a queue waits for itself; a HIP stream
    /// keeps its order whatever the memory.
    pub(crate) fn wait_before(&mut self, user: &User, access: Access) -> Result<()> {
        self.wait_where(|other, theirs| {
            let in_order = matches!(user, User::Hip(_)) && other.is_same(user);
            !in_order && (access == Access::Write || theirs == Access::Write)
        })
    }

    /// Waits for everyone.
    pub(crate) fn drain(&mut self) -> Result<()> {
        self.wait_where(|_, _| true)
    }

    /// An entry leaves the list only after its wait succeeded.
    fn wait_where(&mut self, conflicts: impl Fn(&User, Access) -> bool) -> Result<()> {
        while let Some(place) = self
            .0
            .iter()
            .position(|(user, access)| conflicts(user, *access))
        {
            self.0[place].0.wait()?;
            self.0.remove(place);
        }
        Ok(())
    }
}
