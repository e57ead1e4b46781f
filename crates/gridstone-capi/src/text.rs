//! Texts that the library gives: reports, schemas, receipts. They are handles, so that one that was freed is known.

use crate::handle::{Object, get, gridstone_handle, insert};
use crate::memory::Out;
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use gridstone::base::Id;
use std::ffi::{CString, c_char};

/// A text of the library, in UTF-8.
pub type gridstone_text = gridstone_handle;

pub(crate) struct Text(CString);

impl Object for Text {
    const NAME: &'static str = "a text";
}

/// The handle of a text.
pub(crate) fn text_handle(text: impl Into<String>) -> Outcome<gridstone_text> {
    let text =
        CString::new(text.into()).map_err(|_| Failure::input("the text has a zero in it, which C cannot show"))?;
    insert(Text(text))
}

/// Texts of JSON as a list of JSON.
pub(crate) fn json_list(texts: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", texts.into_iter().collect::<Vec<_>>().join(","))
}

/// The id that the caller's text is.
pub(crate) fn id_of(text: &str, name: &str) -> Outcome<Id> {
    Ok(Id::given(text).map_err(|e| e.context(name))?)
}

/// The characters of a text, with a zero behind them, and how many bytes they are without it.
///
/// @param text the text.
/// @param characters where the pointer goes; it is valid until the text is freed.
/// @param length_bytes where the length goes, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_text_get(
    text: gridstone_text,
    characters: *mut *const c_char,
    length_bytes: *mut usize,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let (characters, length) =
            unsafe { (Out::new(characters, "characters")?, Out::optional(length_bytes, "length_bytes")?) };
        let text = get::<Text>(text)?;
        // The text stays where it is until its handle is freed.
        characters.put(text.0.as_ptr());
        length.put(text.0.as_bytes().len());
        Ok(())
    })
}
