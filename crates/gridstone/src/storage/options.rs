//! User options of object stores: addresses, credentials, time limits; by name, as text.

use crate::base::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;

/// Options of object stores by name. Their values are not printed, since some are secret.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct StorageOptions(BTreeMap<String, String>);

impl StorageOptions {
    /// The options `given`, by names in any case.
    ///
    /// # Errors
    /// Input if one is given twice, in different cases, or no object store has an option of that name.
    pub fn new(given: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let mut options = BTreeMap::new();
        for (name, value) in given {
            let name = name.to_ascii_lowercase();
            if options.insert(name.clone(), value).is_some() {
                return Err(Error::input(format!("the storage option {name:?} is given twice; give it once")));
            }
        }
        let options = Self(options);
        #[cfg(feature = "object-stores")]
        super::object::check_names(&options)?;
        Ok(options)
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Debug for StorageOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<StorageOptions> {
        StorageOptions::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn names_have_no_case_and_values_are_not_printed() {
        let options = of(&[("Secret", "hunter2"), ("region", "eu-1")]).unwrap();
        assert_eq!(options.iter().collect::<Vec<_>>(), [("region", "eu-1"), ("secret", "hunter2")]);
        assert_eq!(format!("{options:?}"), r#"{"region", "secret"}"#);
        assert!(of(&[("Key", "a"), ("key", "a")]).is_err());
    }
}
