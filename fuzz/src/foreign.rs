//! Chunks of other formats, decoded by foreign pipelines.

use crate::targets::accepted;
use gridstone::codec::ForeignPipeline;

/// bzip2 sorts up to 900,000 numbers of four bytes, whatever a chunk decodes to.
pub(crate) const FOREIGN_MAX: usize = 4 << 20;

/// Chunks that other libraries wrote.
const CHUNKS: &str = include_str!("../../vectors/foreign/chunks.json");

/// The length to decode to, a mask, the length of a pipeline's text, this text, and a stored chunk.
pub(crate) fn foreign(data: &[u8]) -> bool {
    let Some(([low, high, mask, text_len], rest)) = data.split_first_chunk::<4>() else { return false };
    let Some((text, stored)) = rest.split_at_checked(usize::from(*text_len)) else { return false };
    let text = String::from_utf8_lossy(text);
    let Some(pipeline) = accepted(ForeignPipeline::parse(&text)) else { return false };
    assert_eq!(ForeignPipeline::parse(&pipeline.name()).unwrap(), pipeline);
    let pipeline = pipeline.without(u32::from(*mask));
    let len = usize::from(u16::from_le_bytes([*low, *high]));
    let Some(values) = accepted(pipeline.decode(stored, len)) else { return false };
    assert_eq!(values.len(), len);
    // Numbers may be stored in fewer bits than they have.
    let exact = !["delta", "fixed"].iter().any(|name| pipeline.name().contains(name));
    if let Some(again) = accepted(pipeline.encode(&values)).filter(|_| exact) {
        assert!(pipeline.decode(&again, len).unwrap() == values, "other bytes came back");
    }
    true
}

pub(crate) fn foreign_corpus() -> Vec<Vec<u8>> {
    let entries: Vec<serde_json::Value> = serde_json::from_str(CHUNKS).unwrap();
    entries.iter().filter_map(input).collect()
}

/// Nothing for a chunk of 64 KiB or more.
fn input(entry: &serde_json::Value) -> Option<Vec<u8>> {
    let field = |name: &str| entry[name].as_str().unwrap();
    let values = field("values");
    let len = values.split_once(':').map_or(values.len() / 2, |(_, len)| len.parse().unwrap());
    let mask = entry.get("mask").map_or(0, |mask| mask.as_u64().unwrap() as u8);
    let [low, high] = u16::try_from(len).ok()?.to_le_bytes();
    let (text, stored) = (field("pipeline"), field("stored"));
    let byte = |at: usize| u8::from_str_radix(&stored[at..at + 2], 16).unwrap();
    let stored: Vec<u8> = (0..stored.len()).step_by(2).map(byte).collect();
    Some([&[low, high, mask, text.len() as u8], text.as_bytes(), &stored].concat())
}
