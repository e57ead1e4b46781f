//! A disk as a power cut finds it: what is durable, and what is on its way there.
//!
//! It promises what `docs/format/media.md` assumes, and no more. The bytes of a file are durable after its fsync, the
//! names in a folder after the folder's. Before that, every 512 bytes written and every change of a name may be there
//! or not, whatever came earlier or later; of bytes that were not written, where a later part of the file is there,
//! zeros are found or rubbish. Of a name that was changed, one of the files that it named since the last fsync is
//! found, or none if it was free for a while.

use super::trace::Event;
use gridstone_testkit::Dice;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What a device writes in one piece.
const SECTOR: usize = 512;

type Number = usize;

#[derive(Debug, Clone)]
enum Inode {
    File { durable: Arc<Vec<u8>>, pending: Vec<(usize, Arc<[u8]>)>, len: usize },
    Folder(BTreeMap<String, Name>),
}

/// What a name stands for: durably, and each thing since. The last is what a running system sees.
#[derive(Debug, Clone, Default)]
struct Name {
    durable: Option<Number>,
    later: Vec<Option<Number>>,
}

impl Name {
    fn now(&self) -> Option<Number> {
        self.later.last().copied().unwrap_or(self.durable)
    }
}

/// How a power cut treats what is not durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// All is lost.
    Lost,
    /// All is there: as after the death of the process.
    Kept,
    /// Names are as they were last, bytes are lost.
    NamesOnly,
    /// Bytes are there, names are not.
    BytesOnly,
    /// Each as the dice fall.
    Mixed(u64),
}

/// What is found under the store's folder: `None` is a folder.
pub(super) type Image = BTreeMap<String, Option<Vec<u8>>>;

/// The disk, with the folder in which the store is going to be made.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    inodes: Vec<Inode>,
}

const TOP: Number = 0;

impl Disk {
    pub(super) fn new() -> Self {
        Self { inodes: vec![Inode::Folder(BTreeMap::new())] }
    }

    fn add(&mut self, inode: Inode) -> Number {
        self.inodes.push(inode);
        self.inodes.len() - 1
    }

    fn names(&mut self, folder: Number) -> &mut BTreeMap<String, Name> {
        match &mut self.inodes[folder] {
            Inode::Folder(names) => names,
            Inode::File { .. } => panic!("a file where a folder is used"),
        }
    }

    /// What a path leads to; paths are relative to the top.
    fn find(&mut self, path: &Path) -> Number {
        path.iter().fold(TOP, |folder, name| {
            let name = name.to_str().unwrap();
            self.names(folder)
                .get(name)
                .and_then(Name::now)
                .unwrap_or_else(|| panic!("{} is not there", path.display()))
        })
    }

    fn set(&mut self, path: &Path, to: Option<Number>) {
        let folder = self.find(path.parent().unwrap());
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        self.names(folder).entry(name).or_default().later.push(to);
    }

    /// Does one event; paths are relative to the top.
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Create(path) => {
                let file = self.add(Inode::File { durable: Arc::default(), pending: Vec::new(), len: 0 });
                self.set(path, Some(file));
            }
            Event::MakeFolder(path) => {
                let folder = self.add(Inode::Folder(BTreeMap::new()));
                self.set(path, Some(folder));
            }
            Event::Write(path, bytes) => self.write(path, bytes),
            Event::SyncFile(path) => self.sync_file(path),
            Event::SyncFolder(path) => {
                let folder = self.find(path);
                for name in self.names(folder).values_mut() {
                    *name = Name { durable: name.now(), later: Vec::new() };
                }
            }
            Event::Link(from, to) => {
                let file = self.find(from);
                self.set(to, Some(file));
            }
            Event::Rename(from, to) => {
                let file = self.find(from);
                self.set(to, Some(file));
                self.set(from, None);
            }
            Event::RemoveFile(path) | Event::RemoveFolder(path) => self.set(path, None),
            Event::RemoveAll(path) => self.remove_all(path),
            // Of what is durable the end of a file's writing says nothing.
            Event::Close(_) | Event::Said(_) => {}
        }
    }

    fn write(&mut self, path: &Path, bytes: &Arc<[u8]>) {
        let file = self.find(path);
        let Inode::File { pending, len, .. } = &mut self.inodes[file] else { panic!("a folder is written") };
        pending.push((*len, bytes.clone()));
        *len += bytes.len();
    }

    fn sync_file(&mut self, path: &Path) {
        let file = self.find(path);
        let Inode::File { durable, pending, len } = &mut self.inodes[file] else { panic!("a folder is synced so") };
        let mut bytes = durable.to_vec();
        bytes.resize(*len, 0);
        for (at, written) in pending.drain(..) {
            bytes[at..at + written.len()].copy_from_slice(&written);
        }
        *durable = Arc::new(bytes);
    }

    fn remove_all(&mut self, path: &Path) {
        let folder = self.find(path);
        if let Inode::Folder(names) = &self.inodes[folder] {
            let inside: Vec<String> = names.iter().filter(|(_, n)| n.now().is_some()).map(|(n, _)| n.clone()).collect();
            inside.iter().for_each(|name| self.remove_all(&path.join(name)));
        }
        self.set(path, None);
    }

    /// What is found in the folder `store` after a cut.
    pub(super) fn after(&self, cut: Cut, store: &str) -> Image {
        let seed = if let Cut::Mixed(seed) = cut { seed } else { 0 };
        let (mut image, mut dice) = (Image::new(), Dice::new(seed));
        let Inode::Folder(names) = &self.inodes[TOP] else { panic!("the top is a folder") };
        if let Some(root) = names.get(store).and_then(|name| chosen(name, cut, &mut dice)) {
            self.collect(root, "", cut, &mut dice, &mut image);
        }
        image
    }

    fn collect(&self, number: Number, path: &str, cut: Cut, dice: &mut Dice, image: &mut Image) {
        match &self.inodes[number] {
            Inode::File { durable, pending, len } => {
                image.insert(path.to_owned(), Some(bytes_after(durable, pending, *len, cut, dice)));
            }
            Inode::Folder(names) => {
                image.insert(path.to_owned(), None);
                for (name, state) in names {
                    if let Some(number) = chosen(state, cut, dice) {
                        self.collect(number, &format!("{path}/{name}"), cut, dice, image);
                    }
                }
            }
        }
    }
}

/// What a name stands for after a cut.
fn chosen(name: &Name, cut: Cut, dice: &mut Dice) -> Option<Number> {
    match cut {
        Cut::Lost | Cut::BytesOnly => name.durable,
        Cut::Kept | Cut::NamesOnly => name.now(),
        Cut::Mixed(_) => match dice.below(name.later.len() + 1) {
            0 => name.durable,
            n => name.later[n - 1],
        },
    }
}

fn bytes_after(
    durable: &Arc<Vec<u8>>,
    pending: &[(usize, Arc<[u8]>)],
    len: usize,
    cut: Cut,
    dice: &mut Dice,
) -> Vec<u8> {
    let mut bytes = durable.to_vec();
    if pending.is_empty() {
        return bytes;
    }
    let kept = match cut {
        Cut::Lost => return bytes,
        Cut::Kept | Cut::BytesOnly => 100,
        Cut::NamesOnly => 0,
        Cut::Mixed(_) => *dice.pick(&[0, 50, 90, 100]),
    };
    // The length is one thing, what lies in it another.
    let rubbish = if matches!(cut, Cut::Mixed(_)) && dice.chance(50) { dice.word() as u8 } else { 0 };
    let full = !matches!(cut, Cut::Mixed(_)) || dice.chance(50);
    bytes.resize(if full { len } else { dice.between(durable.len() as i128, len as i128) as usize }, rubbish);
    for (at, written) in pending {
        for (n, sector) in written.chunks(SECTOR).enumerate() {
            let from = at + n * SECTOR;
            let room = bytes.len().saturating_sub(from).min(sector.len());
            if room > 0 && dice.chance(kept) {
                bytes[from..from + room].copy_from_slice(&sector[..room]);
            }
        }
    }
    bytes
}
