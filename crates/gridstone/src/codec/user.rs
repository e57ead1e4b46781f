//! User-defined filters, by string id.
//!
//! An id is a name with a dot in it (`acme.xor`), so it never equals the name of a filter of this crate. A pipeline may
//! name a filter that is not registered: schemas and fragments can be read, and only blocks that need it fail. That is
//! why the filter is looked up whenever a block is encoded or decoded.
//!
//! A program may also register a *family*: all ids that begin with its name and a dot. It makes the filter when it is asked
//! for one that was not registered by itself.
//!
//! Filters are registered per process: schemas are checked, and fragments decoded, where there is no context. The list
//! only grows and is read without a lock, so it survives a fork whatever other threads do.

use super::Filter;
use super::filter::front;
use crate::base::{Element, Error, Result};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// What a program must implement to add a filter. Several threads call it at once.
pub trait UserFilter: Send + Sync {
    /// The encoded form of `input`, values of `width` bytes each (1: bytes). It takes at most twice as many
    /// bytes as `input`, and 4,096.
    fn encode(&self, input: &[u8], width: usize) -> Result<Vec<u8>>;

    /// The input that `encode` made `input` from, at most `len_max` bytes: a longer result is refused.
    fn decode(&self, input: &[u8], width: usize, len_max: usize) -> Result<Vec<u8>>;

    /// The input that the writer of a foreign file made `input` from, with the `parameters` that the file has. A filter
    /// that has no use for them keeps this default.
    fn decode_foreign(&self, input: &[u8], parameters: &str, len_max: usize) -> Result<Vec<u8>> {
        let _ = parameters;
        self.decode(input, 1, len_max)
    }
}

/// What a program must implement to add all filters whose ids begin with one name. Several threads call it at once, for
/// each block that is decoded.
pub trait FilterFamily: Send + Sync {
    /// The filter `id`, which begins with the family's name.
    ///
    /// # Errors
    /// Unsupported: there is none, or what it needs is not installed.
    fn filter(&self, id: &str) -> Result<Arc<dyn UserFilter>>;
}

/// The largest form that a user-defined filter may make of `len` bytes.
pub(super) fn encoded_len_max(len: usize) -> usize {
    len.saturating_mul(2).saturating_add(4_096)
}

const ID_BYTES_MAX: usize = 64;

/// Whether `name` is that of a user-defined filter: letters, digits, `_`, `-` and at least one dot inside.
pub(super) fn is_id(name: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let parts = name.split('.').collect::<Vec<_>>();
    name.len() <= ID_BYTES_MAX && parts.len() > 1 && parts.iter().all(|p| !p.is_empty() && p.chars().all(known))
}

/// What is known by a name: with a dot a filter, without one a family.
enum Known {
    Filter(Arc<dyn UserFilter>),
    Family(Arc<dyn FilterFamily>),
}

struct Registered {
    id: String,
    known: Known,
    next: OnceLock<Box<Registered>>,
}

static FIRST: OnceLock<Box<Registered>> = OnceLock::new();

/// All registrations, oldest first.
fn registered() -> impl Iterator<Item = &'static Registered> {
    std::iter::successors(FIRST.get(), |entry| entry.next.get()).map(|entry| &**entry)
}

/// What was registered last under `id`.
fn find(id: &str) -> Option<&'static Known> {
    registered().filter(|entry| entry.id == id).last().map(|entry| &entry.known)
}

/// The filter registered as `id`, or made by its family; an Unsupported error if there is none.
pub(super) fn registered_filter(id: &str) -> Result<Arc<dyn UserFilter>> {
    if let Some(Known::Filter(filter)) = find(id) {
        return Ok(filter.clone());
    }
    let family = id.split_once('.').and_then(|(name, _)| find(name));
    match family {
        Some(Known::Family(family)) => family.filter(id).map_err(|e| e.context(format!("filter {id:?}"))),
        _ => Err(not_registered(id)),
    }
}

fn not_registered(id: &str) -> Error {
    Error::unsupported(format!(
        "the filter {id:?} is user-defined, and not registered in this process; register it first: in Python \
             gridstone.register_filter({id:?}, encode=…, decode=…), in Rust engine::register_filter"
    ))
}

/// Registers `filter` as `id` in this process, for all contexts; `replace`: also if the id is taken.
///
/// # Errors
/// Input: no id; Exists: the id is taken.
pub fn register(id: &str, filter: Arc<dyn UserFilter>, replace: bool) -> Result<()> {
    if !is_id(id) {
        return Err(Error::input(format!(
            "a filter's id is a name with a dot, such as acme.xor: letters, digits, _ and - in parts separated by dots, at most \
             {ID_BYTES_MAX} bytes; found {id:?}"
        )));
    }
    if !replace && find(id).is_some() {
        return Err(Error::exists(format!("a filter {id:?} is registered already; say so if it is to be replaced")));
    }
    keep(id, Known::Filter(filter));
    Ok(())
}

/// Registers all filters whose ids begin with `name` and a dot, for all contexts; those registered by themselves come
/// first.
///
/// # Errors
/// Input: no name that an id may begin with.
pub fn register_family(name: &str, family: Arc<dyn FilterFamily>) -> Result<()> {
    if name.contains('.') || !is_id(&format!("{name}.x")) {
        return Err(Error::input(format!(
            "the name of a family of filters has letters, digits, _ and - and no dot; found {name:?}"
        )));
    }
    keep(name, Known::Family(family));
    Ok(())
}

fn keep(id: &str, known: Known) {
    let mut entry = Box::new(Registered { id: id.to_owned(), known, next: OnceLock::new() });
    let mut end = &FIRST;
    loop {
        match end.set(entry) {
            Ok(()) => return,
            Err(back) => entry = back,
        }
        // It is set: another entry is there.
        if let Some(taken) = end.get() {
            end = &taken.next;
        }
    }
}

/// The registered ids, in alphabetical order; those of families are not known.
pub fn registered_ids() -> Vec<String> {
    let filters = registered().filter(|entry| matches!(entry.known, Known::Filter(_)));
    let mut ids: Vec<String> = filters.map(|entry| entry.id.clone()).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// A user-defined filter in a pipeline.
#[derive(Clone)]
pub(super) struct Named(pub(super) String);

impl Named {
    fn filter(&self) -> Result<Arc<dyn UserFilter>> {
        registered_filter(&self.0)
    }

    fn named(&self, error: Error) -> Error {
        error.context(format!("filter {:?}", self.0))
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Named({})", self.0)
    }
}

impl Filter for Named {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn accepts(&self, _element: Element) -> bool {
        true
    }

    fn output(&self, _element: Element) -> Element {
        Element::BYTE
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        encoded_len_max(len)
    }

    fn check_available(&self) -> Result<()> {
        self.filter().map(drop)
    }

    fn encode(&self, input: &[u8], element: Element, out: &mut Vec<u8>) -> Result<()> {
        let made = self.filter()?.encode(input, element.size()).map_err(|e| self.named(e))?;
        if made.len() > encoded_len_max(input.len()) {
            return Err(self.named(Error::input(format!(
                "encode made {} bytes of {}; at most {} are allowed",
                made.len(),
                input.len(),
                encoded_len_max(input.len())
            ))));
        }
        out.extend_from_slice(&made);
        Ok(())
    }

    fn decode(&self, input: &[u8], element: Element, out: &mut [u8]) -> Result<usize> {
        let made = self.filter()?.decode(input, element.size(), out.len()).map_err(|e| self.named(e))?;
        front(&self.0, out, made.len())?.copy_from_slice(&made);
        Ok(made.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;
    use crate::codec::{Pipeline, conformance};
    use proptest::prelude::*;

    /// Inverts every byte; the width does not matter.
    struct Flip;

    impl UserFilter for Flip {
        fn encode(&self, input: &[u8], _width: usize) -> Result<Vec<u8>> {
            Ok(input.iter().map(|byte| !byte).collect())
        }

        fn decode(&self, input: &[u8], width: usize, _len_max: usize) -> Result<Vec<u8>> {
            self.encode(input, width)
        }
    }

    /// Makes as many bytes as configured, whatever the input.
    struct Makes(usize);

    impl UserFilter for Makes {
        fn encode(&self, _input: &[u8], _width: usize) -> Result<Vec<u8>> {
            Ok(vec![1; self.0])
        }

        fn decode(&self, _input: &[u8], _width: usize, _len_max: usize) -> Result<Vec<u8>> {
            Ok(vec![1; self.0])
        }
    }

    #[test]
    fn conforms() {
        register("test.flip", Arc::new(Flip), true).unwrap();
        conformance::check(&Named("test.flip".into()));
    }

    #[test]
    fn ids_have_a_dot_inside() {
        for bad in ["", ".", "a.", ".a", "a..b", "xor", "a b.c", "a.b,c", "a.b:1", "ä.b", &"a.".repeat(40)] {
            assert!(!is_id(bad), "{bad}");
            assert_eq!(register(bad, Arc::new(Flip), true).unwrap_err().kind(), ErrorKind::Input);
        }
        assert!(is_id("acme.xor") && is_id("Org.acme-2.x_y"));
    }

    #[test]
    fn one_that_is_missing_is_told_where_it_is_needed() {
        let pipeline = Pipeline::parse("test.missing,zstd:1").unwrap();
        assert_eq!(pipeline.name(), "test.missing,zstd:1");
        assert!(Pipeline::parse("a.b,a.b,a.b,a.b,lz4").is_ok());
        assert!(Pipeline::parse("a.b,a.b,a.b,a.b,a.b").unwrap_err().message().contains("at most 4"));
        for error in [
            pipeline.encode(&[1, 2], Element::BYTE).unwrap_err(),
            Pipeline::parse("test.missing").unwrap().decode(&[1], Element::BYTE, 1).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.message().contains("register_filter(\"test.missing\""), "{error}");
        }
        let error = Pipeline::parse("test.missing:3").unwrap_err();
        assert!(error.message().contains("no level"), "{error}");
    }

    #[test]
    fn an_id_is_taken_once() {
        register("test.once", Arc::new(Flip), false).unwrap();
        assert_eq!(register("test.once", Arc::new(Flip), false).unwrap_err().kind(), ErrorKind::Exists);
        register("test.once", Arc::new(Makes(3)), true).unwrap();
        let pipeline = Pipeline::parse("test.once").unwrap();
        assert_eq!(pipeline.encode(&[0], Element::BYTE).unwrap(), [1, 1, 1]);
        assert!(registered_ids().contains(&"test.once".to_owned()));
    }

    /// Has filters that are named by numbers, and makes as many bytes as the id says.
    struct Counts;

    impl FilterFamily for Counts {
        fn filter(&self, id: &str) -> Result<Arc<dyn UserFilter>> {
            let count = id.rsplit('.').next().and_then(|last| last.parse().ok());
            let count = count.ok_or_else(|| Error::unsupported("only numbers, please"))?;
            Ok(Arc::new(Makes(count)))
        }
    }

    #[test]
    fn a_family_makes_what_was_not_registered_by_itself() {
        for bad in ["", "a.b", "a b", "ä", &"a".repeat(63)] {
            assert_eq!(register_family(bad, Arc::new(Counts)).unwrap_err().kind(), ErrorKind::Input, "{bad}");
        }
        register_family("counts", Arc::new(Counts)).unwrap();
        let decode = |name: &str, len| Pipeline::parse(name).unwrap().decode(&[0; 9], Element::BYTE, len);
        assert_eq!(decode("counts.3", 3).unwrap(), [1, 1, 1]);
        assert_eq!(decode("counts.a.2", 2).unwrap(), [1, 1]);
        let error = decode("counts.none", 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("\"counts.none\": only numbers, please"), "{error}");
        assert!(Pipeline::parse("counts.none").unwrap().check_available().is_err());
        assert!(decode("other.3", 3).unwrap_err().message().contains("register_filter"));
        assert!(!registered_ids().iter().any(|id| id.starts_with("counts")));
        register("counts.4", Arc::new(Makes(1)), false).unwrap();
        assert_eq!(decode("counts.4", 1).unwrap(), [1]);
    }

    #[test]
    fn lengths_are_checked_on_both_ways() {
        register("test.long", Arc::new(Makes(encoded_len_max(10) + 1)), true).unwrap();
        let error = Pipeline::parse("test.long").unwrap().encode(&[0; 10], Element::BYTE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        for len in [0, 9, 11, 1 << 20] {
            register("test.other", Arc::new(Makes(len)), true).unwrap();
            for name in ["test.other", "test.other,test.flip", "shuffle,test.other"] {
                register("test.flip", Arc::new(Flip), true).unwrap();
                let error = Pipeline::parse(name).unwrap().decode(&[7; 4], Element::signed(2), 10).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corruption, "{name} {len}");
            }
        }
    }

    proptest! {
        #[test]
        fn it_goes_anywhere_in_a_pipeline(values in prop::collection::vec(any::<i32>(), 0..500), pick in 0..4usize) {
            register("test.flip", Arc::new(Flip), true).unwrap();
            let text = ["test.flip", "delta,test.flip", "test.flip,lz4", "shuffle,test.flip,test.flip,rle"][pick];
            let input: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let pipeline = Pipeline::parse(text).unwrap();
            let stored = pipeline.encode(&input, Element::signed(4)).unwrap();
            prop_assert_eq!(pipeline.decode(&stored, Element::signed(4), input.len()).unwrap(), input);
        }
    }
}
