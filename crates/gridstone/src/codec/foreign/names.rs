//! The table of foreign filters: the only place with their names.

use super::bitshuffle::{Bitshuffle, Compression};
use super::delta::Delta;
use super::filter::ForeignFilter;
use super::fixed_scale_offset::FixedScaleOffset;
use super::number::{Conversion, Number};
use super::user::Named;
use super::{blosc::Blosc, bzip2::Bzip2, crc32c::Crc32c, deflate::Deflate};
use super::{fletcher32::Fletcher32, gzip::Gzip, lz4::Lz4, lz4h5::Lz4h5, lzf::Lzf, shuffle::Shuffle, zstd::Zstd};
use crate::base::{Error, Result};
use std::sync::Arc;

const KNOWN: &str = "none, shuffle:W, bitshuffle:W[:B][:lz4|:zstd], deflate, gzip, zstd, lz4, lz4h5, lzf, bzip2, blosc, \
                     fletcher32, crc32c, delta:T[:A], fixedscaleoffset:O:S:T[:A]";

/// The filter that `text` names with its parameters.
///
/// Errors: Unsupported for an unknown name, Schema for parameters that the filter does not have.
pub(super) fn filter(text: &str) -> Result<Arc<dyn ForeignFilter>> {
    let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
    if name.contains('.') {
        return Ok(Arc::new(Named::parse(name, rest)?));
    }
    let parameters: Vec<&str> = rest.map(|rest| rest.split(':').collect()).unwrap_or_default();
    match name {
        "shuffle" => shuffle(text, &parameters),
        "bitshuffle" => bitshuffle(text, &parameters),
        "delta" => delta(text, &parameters),
        "fixedscaleoffset" => fixed_scale_offset(text, &parameters),
        _ => match plain(name) {
            Some(filter) if parameters.is_empty() => Ok(filter),
            Some(_) => Err(Error::schema(format!("filter {name} has no parameters, found {text:?}"))),
            None => Err(Error::unsupported(format!(
                "filter {name:?} is not known; known are {KNOWN}, and user-defined ones, which have a dot in their name"
            ))),
        },
    }
}

/// The filters without parameters.
fn plain(name: &str) -> Option<Arc<dyn ForeignFilter>> {
    Some(match name {
        "blosc" => Arc::new(Blosc),
        "bzip2" => Arc::new(Bzip2),
        "crc32c" => Arc::new(Crc32c),
        "deflate" => Arc::new(Deflate),
        "fletcher32" => Arc::new(Fletcher32),
        "gzip" => Arc::new(Gzip),
        "lz4" => Arc::new(Lz4),
        "lz4h5" => Arc::new(Lz4h5),
        "lzf" => Arc::new(Lzf),
        "zstd" => Arc::new(Zstd),
        _ => return None,
    })
}

fn shuffle(text: &str, parameters: &[&str]) -> Result<Arc<dyn ForeignFilter>> {
    match parameters {
        [width] => Ok(Arc::new(Shuffle { width: positive("shuffle", width)? })),
        _ => Err(usage(text, "shuffle:W, with W the bytes of an element")),
    }
}

fn bitshuffle(text: &str, parameters: &[&str]) -> Result<Arc<dyn ForeignFilter>> {
    let (compression, numbers) = match parameters {
        [numbers @ .., "lz4"] => (Some(Compression::Lz4), numbers),
        [numbers @ .., "zstd"] => (Some(Compression::Zstd), numbers),
        numbers => (None, numbers),
    };
    let (width, block) = match numbers {
        [width] => (width, None),
        [width, block] => (width, Some(positive("bitshuffle", block)?)),
        _ => {
            let form = "bitshuffle:W[:B][:lz4|:zstd], with W the bytes of an element and B the elements of a block";
            return Err(usage(text, form));
        }
    };
    Ok(Arc::new(Bitshuffle::new(positive("bitshuffle", width)?, block, compression)?))
}

fn delta(text: &str, parameters: &[&str]) -> Result<Arc<dyn ForeignFilter>> {
    let types = types(parameters)?.ok_or_else(|| usage(text, "delta:T[:A], with T and A types such as <i4"))?;
    Ok(Arc::new(Delta::new(types)?))
}

fn fixed_scale_offset(text: &str, parameters: &[&str]) -> Result<Arc<dyn ForeignFilter>> {
    let form = "fixedscaleoffset:OFFSET:SCALE:T[:A], with T and A types such as <f8";
    let [offset, scale, rest @ ..] = parameters else { return Err(usage(text, form)) };
    let types = types(rest)?.ok_or_else(|| usage(text, form))?;
    Ok(Arc::new(FixedScaleOffset { offset: float("offset", offset)?, scale: float("scale", scale)?, types }))
}

fn usage(text: &str, form: &str) -> Error {
    Error::schema(format!("the filter is written {form}; found {text:?}"))
}

/// The type of the values, and that of the stored ones, by default the same; nothing of another number of texts.
fn types(texts: &[&str]) -> Result<Option<Conversion>> {
    let (of, stored) = match texts {
        [of] => (of, of),
        [of, stored] => (of, stored),
        _ => return Ok(None),
    };
    Ok(Some(Conversion { of: Number::parse(of)?, stored: Number::parse(stored)? }))
}

fn positive(filter: &str, text: &str) -> Result<u32> {
    let number = text.parse().ok().filter(|number| *number > 0 && !text.starts_with('+'));
    number.ok_or_else(|| Error::schema(format!("filter {filter} needs a number of 1 or more, found {text:?}")))
}

fn float(what: &str, text: &str) -> Result<f64> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| Error::schema(format!("filter fixedscaleoffset needs a number as its {what}, found {text:?}")))
}
