//! Turns a bucket, options and the environment into a client of an object store.
//!
//! Options have the names that fsspec and obstore use, and those of the crate underneath. Missing options come from the
//! environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`). Credentials come whole from one of the two, never a key from one and
//! its token from the other.

use super::client::Stores;
use super::failure::Place;
use crate::base::{Error, ErrorKind, Result, xxh3};
use crate::storage::StorageOptions;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Amazon's, which many stores implement.
    S3,
    /// Google's.
    Google,
    /// Microsoft's.
    Azure,
}

/// How often a failed request is retried where that is allowed, unless the option `retries` sets it.
const RETRIES: usize = 5;
/// The time after its start at which a request is no longer retried: shorter than credentials and signatures live.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);
/// Gridstone's own option.
const RETRIES_NAME: &str = "retries";
/// Options that are a time; a bare number counts seconds.
const TIMES: [&str; 4] = ["timeout", "connect_timeout", "read_timeout", "pool_idle_timeout"];

impl Kind {
    const ALL: [Self; 3] = [Self::S3, Self::Google, Self::Azure];

    /// The kind for a URI's scheme.
    pub(super) fn of_scheme(scheme: &str) -> Option<Self> {
        match scheme {
            "s3" => Some(Self::S3),
            "gs" => Some(Self::Google),
            "az" => Some(Self::Azure),
            _ => None,
        }
    }

    fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::S3 => "AWS_",
            Self::Google => "GOOGLE_",
            Self::Azure => "AZURE_",
        }
    }

    /// The names that users know options by, and their names in the crate underneath.
    fn aliases(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::S3 => &[
                ("key", "access_key_id"),
                ("secret", "secret_access_key"),
                ("anon", "skip_signature"),
                ("region_name", "region"),
                ("requester_pays", "request_payer"),
            ],
            Self::Google => &[("token", "service_account"), ("anon", "skip_signature"), ("endpoint_url", "base_url")],
            Self::Azure => &[("anon", "skip_signature"), ("endpoint_url", "endpoint")],
        }
    }

    /// For messages: the options that most users need.
    fn known(self) -> &'static str {
        match self {
            Self::S3 => {
                "key, secret, token, endpoint_url, region, anon, role_arn, virtual_hosted_style_request, allow_http, timeout, \
                 connect_timeout, retries, and the other aws_… options of object_store"
            }
            Self::Google => {
                "token (the path of a service account's file), service_account_key, bearer_token, anon, endpoint_url, timeout, \
                 connect_timeout, retries, and the other google_… options of object_store"
            }
            Self::Azure => {
                "account_name, account_key, sas_token, tenant_id, client_id, client_secret, anon, endpoint_url, timeout, \
                 connect_timeout, retries, and the other azure_… options of object_store"
            }
        }
    }

    /// The canonical name of an option; `None` if it does not exist, or the URI sets it.
    fn canonical(self, name: &str) -> Option<String> {
        let name = self.aliases().iter().find(|(alias, _)| *alias == name).map_or(name, |(_, meant)| meant);
        let found = match self {
            Self::S3 => name.parse::<AmazonS3ConfigKey>().ok().map(|key| key.as_ref().to_owned()),
            Self::Google => name.parse::<GoogleConfigKey>().ok().map(|key| key.as_ref().to_owned()),
            Self::Azure => name.parse::<AzureConfigKey>().ok().map(|key| key.as_ref().to_owned()),
        };
        if name == RETRIES_NAME {
            return Some(name.to_owned());
        }
        found
            .filter(|name| !name.contains("bucket") || name.contains("bucket_key"))
            .filter(|name| !name.contains("container_name"))
    }

    /// Options of credentials, by their canonical names: given ones replace all of the environment's.
    fn says_who(self, name: &str) -> bool {
        let parts: &[&str] = match self {
            Self::S3 => &["access_key", "token", "role", "container_", "skip_signature"],
            Self::Google => &["service_account", "credentials", "bearer_token", "skip_signature"],
            Self::Azure => &[
                "account_key",
                "access_key",
                "sas_",
                "token",
                "client_",
                "tenant",
                "authority",
                "use_azure_cli",
                "skip_signature",
            ],
        };
        parts.iter().any(|part| name.contains(part))
    }
}

/// All settings of a client, by the options' canonical names.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) kind: Kind,
    pub(super) bucket: String,
    values: BTreeMap<String, String>,
}

/// The values may be secret.
impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Settings({}://{}, {:?})", self.kind.scheme(), self.bucket, self.values.keys())
    }
}

impl Settings {
    /// The settings for `bucket`, from `options`, completed from `environment`.
    ///
    /// # Errors
    /// Input for an unknown option, or one given twice under different names.
    pub(super) fn new(
        kind: Kind,
        bucket: &str,
        options: &StorageOptions,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self> {
        let mut values = BTreeMap::new();
        for (name, value) in options.iter() {
            let known = kind.canonical(name).ok_or_else(|| unknown(kind, name))?;
            let value = if TIMES.contains(&known.as_str()) { with_unit(value) } else { value.to_owned() };
            if values.insert(known, value).is_some() {
                return Err(Error::input(format!(
                    "the storage option {name:?} is given twice, under two names; give one"
                )));
            }
        }
        let who = values.keys().any(|name| kind.says_who(name));
        let endpoint = values.contains_key("aws_endpoint");
        for (name, value) in environment.filter(|(name, value)| name.starts_with(kind.prefix()) && !value.is_empty()) {
            let Some(known) = kind.canonical(&name.to_ascii_lowercase()) else { continue };
            let overruled = (who && kind.says_who(&known)) || (endpoint && known == "aws_endpoint_url_s3");
            if !overruled {
                values.entry(known).or_insert(value);
            }
        }
        let plain = values.iter().any(|(name, value)| {
            (name.contains("endpoint") || name.contains("base_url")) && value.starts_with("http://")
        });
        if plain {
            values.entry("allow_http".to_owned()).or_insert_with(|| "true".to_owned());
        }
        Ok(Self { kind, bucket: bucket.to_owned(), values })
    }

    /// Distinguishes these settings from others: a checksum of all of them.
    pub(super) fn fingerprint(&self) -> u64 {
        xxh3(format!("{:?}{:?}{:?}", self.kind, self.bucket, self.values).as_bytes())
    }

    /// A client that retries failed requests, and one that never does, whose errors are those of that one request.
    ///
    /// # Errors
    /// Input if the settings contradict each other or lack something.
    pub(super) fn connect(&self) -> Result<Stores> {
        // If a process has several providers, the first is used; the choice makes no difference here.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Stores { patient: self.store(self.retries()?)?, once: self.store(0)? })
    }

    fn retries(&self) -> Result<usize> {
        let Some(text) = self.values.get(RETRIES_NAME) else { return Ok(RETRIES) };
        text.parse().map_err(|_| Error::input(format!("the storage option retries is a number, not {text:?}")))
    }

    /// The builder `start` with every value set.
    fn set<B, K>(&self, start: B, with: impl Fn(B, K, &str) -> B) -> object_store::Result<B>
    where
        K: FromStr<Err = object_store::Error>,
    {
        let mut values = self.values.iter().filter(|(name, _)| *name != RETRIES_NAME);
        values.try_fold(start, |builder, (name, value)| Ok(with(builder, name.parse()?, value)))
    }

    fn store(&self, max_retries: usize) -> Result<Arc<dyn ObjectStore>> {
        let retry = RetryConfig { backoff: BackoffConfig::default(), max_retries, retry_timeout: RETRY_TIMEOUT };
        let made: object_store::Result<Arc<dyn ObjectStore>> = match self.kind {
            Kind::S3 => {
                let start = AmazonS3Builder::new().with_bucket_name(&self.bucket).with_retry(retry);
                let all = self.set(start, |builder, key: AmazonS3ConfigKey, value| builder.with_config(key, value));
                all.and_then(AmazonS3Builder::build).map(|store| Arc::new(store) as _)
            }
            Kind::Google => {
                let start = GoogleCloudStorageBuilder::new().with_bucket_name(&self.bucket).with_retry(retry);
                let all = self.set(start, |builder, key: GoogleConfigKey, value| builder.with_config(key, value));
                all.map(nobody).and_then(GoogleCloudStorageBuilder::build).map(|store| Arc::new(store) as _)
            }
            Kind::Azure => {
                let start = MicrosoftAzureBuilder::new().with_container_name(&self.bucket).with_retry(retry);
                let all = self.set(start, |builder, key: AzureConfigKey, value| builder.with_config(key, value));
                all.and_then(MicrosoftAzureBuilder::build).map(|store| Arc::new(store) as _)
            }
        };
        made.map_err(|e| {
            let bucket = format!("{}://{}", self.kind.scheme(), self.bucket);
            let place = Place { bucket: bucket.clone(), uri: bucket.clone() };
            let error = place.error(format_args!("the storage options for {bucket} do not fit"), e);
            if error.kind() == ErrorKind::Storage { Error::input(error.message()).with_source(error) } else { error }
        })
    }
}

/// The builder with an empty token where nothing is to be signed. Even then the library requests a token before it puts
/// an object, and would ask a machine that has none.
fn nobody(builder: GoogleCloudStorageBuilder) -> GoogleCloudStorageBuilder {
    let of = |key| builder.get_config_value(&key);
    // As written; these are the words that the library accepts for true.
    let unsigned = of(GoogleConfigKey::SkipSignature).unwrap_or_default().to_ascii_lowercase();
    let unsigned = ["1", "true", "on", "yes", "y"].contains(&unsigned.as_str());
    if unsigned && of(GoogleConfigKey::BearerToken).is_none() { builder.with_bearer_token("") } else { builder }
}

/// An Input error if no object store has an option of this name.
pub(in crate::storage) fn check_names(options: &StorageOptions) -> Result<()> {
    let nobodys = options.iter().find(|(name, _)| Kind::ALL.iter().all(|kind| kind.canonical(name).is_none()));
    nobodys.map_or(Ok(()), |(name, _)| {
        let all = Kind::ALL.map(|kind| format!("for {}://: {}", kind.scheme(), kind.known())).join("; ");
        Err(Error::input(format!(
            "there is no storage option {name:?}; there are {all}; bucket and key are said by the URI"
        )))
    })
}

fn unknown(kind: Kind, name: &str) -> Error {
    Error::input(format!(
        "there is no storage option {name:?} for {}://; there are {}; bucket and key are said by the URI",
        kind.scheme(),
        kind.known()
    ))
}

/// A time with its unit; seconds if it has none.
fn with_unit(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds > 0.0 => format!("{}ms", (seconds * 1_000.0).ceil()),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(kind: Kind, given: &[(&str, &str)], environment: &[(&str, &str)]) -> Result<Settings> {
        let own = |pairs: &[(&str, &str)]| -> Vec<_> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        Settings::new(kind, "box", &StorageOptions::new(own(given))?, own(environment).into_iter())
    }

    fn value<'a>(settings: &'a Settings, name: &str) -> Option<&'a str> {
        settings.values.get(name).map(String::as_str)
    }

    #[test]
    fn the_names_of_others_mean_the_same() {
        let ours = settings(Kind::S3, &[("key", "k"), ("secret", "s"), ("region_name", "r"), ("timeout", "1.5")], &[])
            .unwrap();
        let theirs =
            [("aws_access_key_id", "k"), ("secret_access_key", "s"), ("AWS_REGION", "r"), ("timeout", "1500ms")];
        let theirs = settings(Kind::S3, &theirs, &[]).unwrap();
        assert_eq!(ours, theirs);
        assert_eq!(ours.fingerprint(), theirs.fingerprint());
        assert_ne!(ours.fingerprint(), settings(Kind::S3, &[("key", "other")], &[]).unwrap().fingerprint());
        assert!(!format!("{ours:?}").contains("\"s\""), "no secret is printed");
    }

    #[test]
    fn an_option_that_is_not_is_refused_with_those_that_are() {
        for (kind, name, hint) in [
            (Kind::S3, "endpont_url", "endpoint_url"),
            (Kind::S3, "bucket", "said by the URI"),
            (Kind::Google, "secret", "service account"),
            (Kind::Azure, "container_name", "account_key"),
        ] {
            let error = settings(kind, &[(name, "x")], &[]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input);
            assert!(error.message().contains(name) && error.message().contains(hint), "{error}");
        }
        assert!(settings(Kind::S3, &[("key", "a"), ("access_key_id", "b")], &[]).is_err(), "twice, under two names");
        let options = |name: &str| StorageOptions::new([(name.to_owned(), String::new())]);
        assert_eq!(options("endpont_url").unwrap_err().kind(), ErrorKind::Input);
        for name in ["key", "account_name", "service_account_key", "timeout", "retries"] {
            options(name).unwrap();
        }
    }

    #[test]
    fn credentials_come_from_one_place() {
        let environment = [
            ("AWS_ACCESS_KEY_ID", "theirs"),
            ("AWS_SECRET_ACCESS_KEY", "theirs"),
            ("AWS_SESSION_TOKEN", "theirs"),
            ("AWS_REGION", "eu-1"),
            ("AWS_PAGER", "less"),
            ("OTHER", "x"),
        ];
        let mixed = settings(Kind::S3, &[("key", "ours"), ("secret", "ours")], &environment).unwrap();
        assert_eq!(value(&mixed, "aws_access_key_id"), Some("ours"));
        assert_eq!((value(&mixed, "aws_session_token"), value(&mixed, "aws_region")), (None, Some("eu-1")));
        let all = settings(Kind::S3, &[], &environment).unwrap();
        assert_eq!((all.values.len(), value(&all, "aws_session_token")), (4, Some("theirs")));
        let anonymous = settings(Kind::S3, &[("anon", "true")], &environment).unwrap();
        assert_eq!((anonymous.values.len(), value(&anonymous, "aws_region")), (2, Some("eu-1")));
    }

    #[test]
    fn an_address_without_tls_is_taken_at_its_word() {
        let environment = [("AWS_ENDPOINT_URL_S3", "https://elsewhere")];
        let plain = settings(Kind::S3, &[("endpoint_url", "http://127.0.0.1:1")], &environment).unwrap();
        assert_eq!(value(&plain, "allow_http"), Some("true"));
        assert_eq!(plain.values.len(), 2, "what is given goes before the environment: {plain:?}");
        assert_eq!(value(&settings(Kind::S3, &[("endpoint_url", "https://x")], &[]).unwrap(), "allow_http"), None);
    }

    #[test]
    fn who_signs_nothing_is_asked_for_no_token() {
        let token = |words: &[(GoogleConfigKey, &str)]| {
            let all = words.iter().fold(GoogleCloudStorageBuilder::new(), |b, (key, word)| b.with_config(*key, *word));
            nobody(all).get_config_value(&GoogleConfigKey::BearerToken)
        };
        let skip = GoogleConfigKey::SkipSignature;
        for word in ["true", "True", "1", "on", "YES", "y"] {
            assert_eq!(token(&[(skip, word)]).as_deref(), Some(""), "{word}");
        }
        assert_eq!(token(&[(skip, "false")]), None);
        assert_eq!(token(&[]), None);
        assert_eq!(token(&[(skip, "1"), (GoogleConfigKey::BearerToken, "t")]).as_deref(), Some("t"));
    }

    #[test]
    fn every_kind_of_store_can_be_made() {
        let azure = [("account_name", "me"), ("account_key", "c2VjcmV0"), ("timeout", "3")];
        settings(Kind::Azure, &azure, &[]).unwrap().connect().unwrap();
        settings(Kind::Google, &[("anon", "true"), ("retries", "2")], &[]).unwrap().connect().unwrap();
        settings(Kind::S3, &[("key", "k"), ("secret", "s")], &[]).unwrap().connect().unwrap();
        for bad in [("retries", "many"), ("timeout", "soon"), ("anon", "perhaps")] {
            let error = settings(Kind::S3, &[bad, ("key", "k"), ("secret", "s")], &[]).unwrap().connect().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        }
        assert_eq!(
            settings(Kind::Azure, &[], &[]).unwrap().connect().unwrap_err().kind(),
            ErrorKind::Input,
            "no account"
        );
    }
}
