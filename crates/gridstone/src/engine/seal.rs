//! Which key a handle's store is sealed with.

use super::{Array, Group};
use crate::base::KeyId;

impl Array {
    /// The id of the key with which the first object read of the store is sealed; `None` if the store is not sealed.
    pub fn key_id(&self) -> Option<KeyId> {
        self.store.storage().key_id()
    }
}

impl Group {
    /// The id of the key with which the first object read of the store is sealed; `None` if the store is not sealed.
    pub fn key_id(&self) -> Option<KeyId> {
        self.store.storage().key_id()
    }
}
