//! Objects of the program that graphs keep alive: what a kernel's argument points to, say, with the function that ends
//! it.

use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use hip_sys::{hipError_t, hipGraph_t, hipHostFn_t, hipUserObject_t, hipUserObjectFlags, hipUserObjectRetainFlags};
use parking_lot::Mutex;

use super::nodes::Graph;
use crate::error::{Result, entry, store};
use crate::handles::{self, Handles};
use crate::log;
use crate::stream::{HostCall, UserData};

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

static OBJECTS: Handles<Object> = Handles::new();

pub(super) struct Object {
    token: usize,
    end: HostCall,
    references: Mutex<usize>,
}

impl Object {
    fn find(object: hipUserObject_t) -> Result<Arc<Self>> {
        OBJECTS.get(object as usize).ok_or(INVALID)
    }

    fn retain(&self, count: usize) {
        *self.references.lock() += count;
    }

    /// Releases references, and ends the object with the last; more than there are change nothing, as on ROCm. Returns
    /// whether anything changed.
    fn release(&self, count: usize) -> bool {
        let mut references = self.references.lock();
        let Some(left) = references.checked_sub(count) else {
            log::refused(
                "hipUserObjectRelease",
                format_args!("release of {count} out of {references} references: nothing is released, as on ROCm"),
            );
            return false;
        };
        *references = left;
        drop(references);
        if left == 0 && OBJECTS.remove(self.token).is_some() {
            self.end.run();
        }
        true
    }
}

/// The references that a graph holds.
#[derive(Default)]
pub(super) struct Objects(HashMap<usize, (Arc<Object>, usize)>);

impl Objects {
    /// The same number of references again, for a graph's copy.
    pub(super) fn share(&self) -> Self {
        for (object, count) in self.0.values() {
            object.retain(*count);
        }
        Self(self.0.clone())
    }

    fn hold(&mut self, object: Arc<Object>, count: usize) {
        let token = object.token;
        self.0.entry(token).or_insert((object, 0)).1 += count;
    }

    /// Forgets references, after they were released.
    fn forget(&mut self, token: usize, count: usize) {
        if let Some((_, held)) = self.0.get_mut(&token) {
            *held = held.saturating_sub(count);
            if *held == 0 {
                self.0.remove(&token);
            }
        }
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        for (object, count) in self.0.values() {
            object.release(*count);
        }
    }
}

/// # Errors
/// `hipErrorInvalidValue` if it is not a count of references.
fn checked(count: c_uint) -> Result<usize> {
    let most = i32::MAX.unsigned_abs();
    if count == 0 || count > most {
        return Err(INVALID);
    }
    Ok(count as usize)
}

pub(crate) unsafe extern "C" fn user_object_create(
    out: *mut hipUserObject_t,
    user: *mut c_void,
    end: hipHostFn_t,
    count: c_uint,
    flags: c_uint,
) -> hipError_t {
    entry("hipUserObjectCreate", || {
        // The one flag is not left open: no call waits for the end of an object.
        if out.is_null() || flags != hipUserObjectFlags::hipUserObjectNoDestructorSync.0 {
            return Err(INVALID);
        }
        let object = Object {
            token: handles::fresh(),
            end: HostCall {
                function: end.ok_or(INVALID)?,
                user: UserData(user),
            },
            references: Mutex::new(checked(count)?),
        };
        let token = object.token;
        OBJECTS.insert_as(token, Arc::new(object));
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, token as hipUserObject_t) }
    })
}

pub(crate) unsafe extern "C" fn user_object_retain(object: hipUserObject_t, count: c_uint) -> hipError_t {
    entry("hipUserObjectRetain", || {
        Object::find(object)?.retain(checked(count)?);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn user_object_release(object: hipUserObject_t, count: c_uint) -> hipError_t {
    entry("hipUserObjectRelease", || {
        Object::find(object)?.release(checked(count)?);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn graph_retain_user_object(
    graph: hipGraph_t,
    object: hipUserObject_t,
    count: c_uint,
    flags: c_uint,
) -> hipError_t {
    entry("hipGraphRetainUserObject", || {
        let moves = hipUserObjectRetainFlags(flags) == hipUserObjectRetainFlags::hipGraphUserObjectMove;
        if !moves && flags != 0 {
            return Err(INVALID);
        }
        let (graph, object) = (Graph::find(graph)?, Object::find(object)?);
        let count = checked(count)?;
        // Moved references were the program's and are the graph's now.
        if !moves {
            object.retain(count);
        }
        graph.objects.lock().hold(object, count);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn graph_release_user_object(
    graph: hipGraph_t,
    object: hipUserObject_t,
    count: c_uint,
) -> hipError_t {
    entry("hipGraphReleaseUserObject", || {
        let (graph, object) = (Graph::find(graph)?, Object::find(object)?);
        let count = checked(count)?;
        let held = graph.objects.lock().0.contains_key(&object.token);
        // A graph that holds none has nothing to release, which ROCm calls a success.
        if held && object.release(count) {
            graph.objects.lock().forget(object.token, count);
        }
        Ok(())
    })
}
