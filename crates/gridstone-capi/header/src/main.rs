//! Makes `include/gridstone.h` of what is public in the C interface; with `--check` fails if the file is not fresh.

use std::path::Path;
use std::process::ExitCode;

const FILE: &str = "include/gridstone.h";

fn header(folder: &Path) -> Result<String, String> {
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml"))?;
    let bindings = cbindgen::generate_with_config(folder, config).map_err(|e| e.to_string())?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    Ok(plain_names(&String::from_utf8(text).map_err(|e| e.to_string())?))
}

/// Parameters as C calls them: in Rust some would hide a function of their name.
fn plain_names(text: &str) -> String {
    let plain = ["options", "attributes", "aggregates", "type", "json"]
        .iter()
        .fold(text.to_owned(), |text, name| text.replace(&format!("{name}_given"), name));
    let plain = plain.replace("tree_out", "tree").replace("read_out", "read");
    plain.replace("*given,", "*columns,").replace("@param given ", "@param columns ")
}

/// Functions of which the comment leaves out a parameter, each with the names.
fn undescribed(header: &str) -> Vec<String> {
    let describes = |(comment, rest): (&str, &str)| {
        let declaration = rest.trim_start().split(';').next()?;
        let (function, parameters) = declaration.strip_suffix(')')?.split_once('(')?;
        let function = function.strip_prefix("gridstone_status ")?;
        let name = |parameter: &str| parameter.rsplit([' ', '*']).next().map(str::to_owned);
        let lacks = |name: &String| name != "void" && !comment.contains(&format!("@param {name} "));
        let missing: Vec<String> = parameters.split(',').filter_map(|one| name(one.trim())).filter(lacks).collect();
        (!missing.is_empty()).then(|| format!("{function}: {}", missing.join(", ")))
    };
    header.split("/**").skip(1).filter_map(|part| part.split_once("*/")).filter_map(describes).collect()
}

fn run() -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no folder above this program's")?;
    let (made, path) = (header(folder)?, folder.join(FILE));
    let check = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--check") => true,
        Some(other) => return Err(format!("unknown argument {other:?}; there is --check")),
    };
    let missing = undescribed(&made);
    if !missing.is_empty() {
        return Err(format!("parameters without @param:\n{}", missing.join("\n")));
    }
    if !check {
        return std::fs::write(&path, made).map_err(|e| format!("{}: {e}", path.display()));
    }
    match std::fs::read_to_string(&path) {
        Ok(found) if found == made => Ok(()),
        Ok(_) => Err(format!("{FILE} is not fresh; run cargo run --package gridstone-header, and commit it")),
        Err(e) => Err(format!("{}: {e}", path.display())),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
