//! The table of Python packages (`xtask/packages.toml`): the allowed imports between the packages of
//! `python/gridstone`.
//!
//! Invariant: a package lists only packages written above it, so the table has no cycle.

use serde::Deserialize;

/// The whole table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Packages {
    package: Vec<Package>,
}

/// A folder of `python/gridstone`, or a module beside the folders.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Package {
    name: String,
    imports: Vec<String>,
}

impl Packages {
    /// Reads the table and checks its invariant.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let packages: Self = toml::from_str(text).map_err(|error| format!("packages.toml: {error}"))?;
        for (index, package) in packages.package.iter().enumerate() {
            let above = packages.package.get(..index).unwrap_or_default();
            if above.iter().any(|known| known.name == package.name) {
                return Err(format!("packages.toml: `{}` is written twice", package.name));
            }
            if let Some(name) = package.imports.iter().find(|name| !above.iter().any(|known| known.name == **name)) {
                return Err(format!(
                    "packages.toml: `{}` imports `{name}`, which is not written above it",
                    package.name
                ));
            }
        }
        Ok(packages)
    }

    /// What `package` may import; `None` if there is no such package.
    pub(crate) fn imports(&self, package: &str) -> Option<&[String]> {
        self.package.iter().find(|known| known.name == package).map(|known| known.imports.as_slice())
    }

    /// Every package, from the bottom.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.package.iter().map(|package| package.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_this_repository_is_sound() {
        let packages = Packages::parse(include_str!("../packages.toml")).unwrap();
        assert_eq!(packages.names().next(), Some("errors"));
        assert_eq!(packages.names().last(), Some("__init__"));
        assert_eq!(packages.imports("base").unwrap(), ["errors"]);
        assert!(packages.imports("attic").is_none());
    }

    #[test]
    fn a_circle_cannot_be_written_down() {
        let up = "[[package]]\nname = \"a\"\nimports = [\"b\"]\n[[package]]\nname = \"b\"\nimports = []\n";
        assert!(Packages::parse(up).unwrap_err().contains("`a` imports `b`"));
        assert!(Packages::parse("[[package]]\nname = \"a\"\nimports = [\"a\"]\n").is_err());
        let twice = "[[package]]\nname = \"a\"\nimports = []\n".repeat(2);
        assert!(Packages::parse(&twice).unwrap_err().contains("twice"));
    }
}
