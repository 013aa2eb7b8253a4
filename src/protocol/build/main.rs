//! Turns `schemas/` into Rust: one file a message in `OUT_DIR`, and the tables around them.

mod decode;
mod emit;
mod encode;
mod json;
mod names;
mod records;
mod schema;
mod structs;
mod tables;

use std::error::Error;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let schemas = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../schemas");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed={}", schemas.display());
    println!("cargo:rerun-if-changed=build");
    let with_json = std::env::var_os("CARGO_FEATURE_JSON").is_some();

    let messages = schema::load(&schemas)?;
    let mut index = String::new();
    for message in &messages {
        let module = names::snake(&message.name);
        write(&out, &format!("{module}.rs"), &structs::message(message, with_json)?)?;
        index.push_str(&structs::index_entry(message, &module));
    }
    index.push_str(&records::index(&messages));
    index.push_str(&structs::message_list(&messages));
    write(&out, "messages.rs", &index)?;
    write(&out, "api_key.rs", &tables::api_keys(&schemas.join("tables/apis.json"), &messages)?)?;
    write(&out, "error_code.rs", &tables::error_codes(&schemas.join("tables/errors.json"))?)?;
    write(&out, "features.rs", &tables::features(&schemas.join("tables/features.json"))?)?;
    Ok(())
}

fn write(out: &Path, name: &str, text: &str) -> Result<(), Box<dyn Error>> {
    std::fs::write(out.join(name), text)?;
    Ok(())
}
