//! Logging: to standard error, one line an event, quiet by default.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Starts logging. `filter` wins over `RUST_LOG`, and that over `default`.
///
/// # Errors
/// The text of what is wrong with the filter.
pub fn start(filter: Option<&str>, default: &str, json: bool) -> Result<(), String> {
    let given = filter.map(str::to_owned).or_else(|| std::env::var("RUST_LOG").ok());
    let text = given.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| default.to_owned());
    let filter = EnvFilter::try_new(&text).map_err(|error| format!("log filter {text:?}: {error}"))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    if json {
        builder.json().init()
    } else {
        builder.init()
    }
    Ok(())
}
