//! Gives the shared library the name by which programs find it when they start.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libhyperslab.so.0");
}
