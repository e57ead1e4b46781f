//! Gives the shared library its name for the dynamic linker, which has the number of the interface.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libgridstone.so.0");
        println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
