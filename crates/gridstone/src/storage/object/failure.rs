//! Maps the errors of object stores to errors of the engine: the kind, and advice.

use crate::base::{Error, ErrorKind};
use object_store::Error as Store;

/// The location of a request, for messages.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// `s3://bucket`.
    pub(super) bucket: String,
    /// `s3://bucket/key`.
    pub(super) uri: String,
}

const CREDENTIALS: &str = "check the credentials (storage_options, or the environment's), and what they allow";

impl Place {
    /// The error for `asked` ("cannot read s3://bucket/a/_log/1") made from the store's error.
    pub(super) fn error(&self, asked: impl std::fmt::Display, error: Store) -> Error {
        let (kind, advice) = self.meaning(&error);
        let said = said(&error);
        Error::new(kind, format!("{asked}: {said}{advice}")).with_source(error)
    }

    fn meaning(&self, error: &Store) -> (ErrorKind, String) {
        let bucket = &self.bucket;
        match error {
            // A listing reports this only in its text.
            Store::NotFound { .. } | Store::Generic { .. } if is_bucket_missing(error) => {
                (ErrorKind::NotFound, format!("; there is no {bucket}: create it, or check its name and the region"))
            }
            Store::NotFound { .. } => (ErrorKind::NotFound, String::new()),
            Store::AlreadyExists { .. } => (ErrorKind::Exists, String::new()),
            Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => {
                (ErrorKind::Access, format!("; access to {bucket} was refused: {CREDENTIALS}"))
            }
            Store::NotSupported { .. } | Store::NotImplemented { .. } => (ErrorKind::Unsupported, String::new()),
            Store::InvalidPath { .. } | Store::UnknownConfigurationKey { .. } => (ErrorKind::Input, String::new()),
            _ => generic(&error.to_string(), bucket),
        }
    }
}

/// The kind and advice for an error that only its text identifies.
fn generic(text: &str, bucket: &str) -> (ErrorKind, String) {
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if has(&["169.254.169.254", "169.254.170.2", "metadata.google.internal"]) {
        let advice = "no credentials were given, and this machine has none of its own: give them in storage_options, set them in \
                      the environment, or say anon=True for a public bucket";
        return (ErrorKind::Access, format!("; {bucket}: {advice}"));
    }
    if has(&["501 Not Implemented"]) {
        return (ErrorKind::Unsupported, "; this store does not know the request".to_owned());
    }
    if has(&["error sending request", "Connect", "connect", "timed out", "dns"]) {
        return (
            ErrorKind::Storage,
            format!("; {bucket} was not reached: check endpoint_url and the network, then try again"),
        );
    }
    (ErrorKind::Storage, String::new())
}

/// Whether the bucket itself does not exist.
pub(super) fn is_bucket_missing(error: &Store) -> bool {
    let text = error.to_string();
    ["NoSuchBucket", "ContainerNotFound", "bucket does not exist"].iter().any(|part| text.contains(part))
}

/// The store's message: code and message of an XML answer, else the text.
fn said(error: &Store) -> String {
    let text = error.to_string();
    let tagged = |tag: &str| {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        rest.split_once('<').map(|(inside, _)| inside.trim().to_owned())
    };
    match (tagged("Code"), tagged("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code,
        _ => text.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// What an error of a conditional write reveals about its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The condition did not hold: nothing happened, if this was the first attempt.
    Refused,
    /// The request was never accepted: nothing happened.
    None,
    /// It is unknown.
    Unknown,
}

/// What `error` reveals about the effect of the write that it answered.
pub(super) fn effect(error: &Store) -> Effect {
    match error {
        // A conflict with another concurrent request; the store asks for a retry.
        Store::AlreadyExists { .. } if error_has(error, &["ConditionalRequestConflict", "OperationAborted"]) => {
            Effect::Unknown
        }
        Store::AlreadyExists { .. } | Store::Precondition { .. } | Store::NotModified { .. } => Effect::Refused,
        Store::PermissionDenied { .. }
        | Store::Unauthenticated { .. }
        | Store::NotSupported { .. }
        | Store::NotImplemented { .. }
        | Store::NotFound { .. }
        | Store::InvalidPath { .. }
        | Store::UnknownConfigurationKey { .. } => Effect::None,
        _ if error_has(error, &["501 Not Implemented"]) => Effect::None,
        _ => Effect::Unknown,
    }
}

fn error_has(error: &Store, parts: &[&str]) -> bool {
    let text = error.to_string();
    parts.iter().any(|part| text.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { bucket: "s3://box".to_owned(), uri: "s3://box/a".to_owned() }
    }

    fn generic_of(text: &str) -> Store {
        Store::Generic { store: "S3", source: text.to_owned().into() }
    }

    fn refused(text: &str) -> Store {
        Store::PermissionDenied { path: "a".to_owned(), source: text.to_owned().into() }
    }

    #[test]
    fn each_answer_has_its_kind_and_advice() {
        let missing = |text: &str| Store::NotFound { path: "a".to_owned(), source: text.to_owned().into() };
        let cases = [
            (missing("404"), ErrorKind::NotFound, "404"),
            (missing("<Error><Code>NoSuchBucket</Code>"), ErrorKind::NotFound, "there is no s3://box: create it"),
            (refused("403"), ErrorKind::Access, "access to s3://box was refused"),
            (generic_of("error sending request"), ErrorKind::Storage, "check endpoint_url"),
            (generic_of("Error performing PUT http://169.254.169.254/latest"), ErrorKind::Access, "no credentials"),
            (generic_of("Server returned 501 Not Implemented"), ErrorKind::Unsupported, "does not know"),
            (generic_of("Server returned 503"), ErrorKind::Storage, "503"),
        ];
        for (error, kind, part) in cases {
            let error = place().error("cannot write s3://box/a", error);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(
                error.message().starts_with("cannot write s3://box/a: ") && error.message().contains(part),
                "{error}"
            );
        }
    }

    #[test]
    fn an_answer_in_xml_is_told_by_its_code_and_message() {
        let xml = "Error performing PUT http://h/b in 3ms - Server returned non-2xx status code: 403 Forbidden: <?xml?><Error>\
                   <Code>SignatureDoesNotMatch</Code>\n<Message>It does not match</Message><Resource/></Error>";
        let error = place().error("cannot read", refused(xml));
        assert!(
            error.message().starts_with("cannot read: SignatureDoesNotMatch: It does not match; access"),
            "{error}"
        );
    }

    #[test]
    fn only_what_surely_did_nothing_says_so() {
        let exists = |text: &str| Store::AlreadyExists { path: "a".to_owned(), source: text.to_owned().into() };
        assert_eq!(effect(&exists("412")), Effect::Refused);
        assert_eq!(effect(&exists("409 <Code>ConditionalRequestConflict</Code>")), Effect::Unknown);
        assert_eq!(effect(&generic_of("503")), Effect::Unknown);
        assert_eq!(effect(&generic_of("timed out")), Effect::Unknown);
        assert_eq!(effect(&refused("403")), Effect::None);
    }
}
