//! What newer releases write into a store that is being made.

use super::world::World;
use gridstone::base::{Error, Id, Result};
use gridstone::fragment::Part;
use gridstone::storage::data_name;
use gridstone::store::{Base, Kept, KeptFile, Operation, Owner, Place};
use std::sync::Arc;

fn base(kind: &str) -> Arc<Base> {
    let place = Place { place: "s3://far/away".to_owned(), state: "asleep".to_owned(), ext: None };
    Arc::new(Base { kind: kind.to_owned(), places: vec![place], ext: None })
}

impl World {
    /// Gives the fragments that wait for a commit an `ext`, and a part with the bit 21.
    pub(crate) fn mark_fragments(&mut self, ext: &[u8], part: &[u8]) {
        for operation in self.operations_mut() {
            if let Operation::AddFragments { fragments, .. } = operation {
                for staged in fragments {
                    let parts = [(17, ext), (21, part)].map(|(bit, bytes)| Part { bit, bytes: bytes.to_vec() });
                    staged.description.extra = parts.to_vec();
                }
            }
        }
    }

    /// The oldest fragment of a committed array.
    pub(crate) fn first_fragment(&self, path: &str) -> Result<Id> {
        let fragments = self.snapshot()?.array(path)?.fragments(None)?;
        fragments.first().map(|d| d.id).ok_or_else(|| Error::input("the array has no fragment"))
    }

    /// Keeps a new file beside a committed array; gives the entry.
    pub(crate) fn keep(&mut self, path: &str, owner: Owner) -> Result<Id> {
        let (array, entry, id) = (self.snapshot()?.node(path)?.id(), self.fresh(), self.fresh());
        let content = format!("beside {path}, {owner:?}");
        let mut sink = self.used().create(&data_name(id))?;
        sink.write(content.as_bytes())?;
        sink.finish()?;
        let files = vec![KeptFile { id, len: content.len() as u64 }];
        let kept = Kept { entry, owner, kind: "of later".to_owned(), files, ext: None };
        self.operations_mut().push(Operation::Keep { array, kept, near: None });
        Ok(entry)
    }

    /// Keeps the files of an entry no longer.
    pub(crate) fn release(&mut self, path: &str, entry: Id) -> Result<()> {
        let array = self.snapshot()?.node(path)?.id();
        self.operations_mut().push(Operation::Release { array, entry });
        Ok(())
    }

    /// Says of what kind a base is; `None`: it is removed. `before`: its kind until now.
    pub(crate) fn set_base(&mut self, number: u32, before: Option<&str>, kind: Option<&str>) {
        let operation = Operation::SetBase { number, base: kind.map(base), before: before.map(base) };
        self.operations_mut().push(operation);
    }
}
