//! Random ids and salts, and the parts of `--initial-controllers`.

use std::collections::BTreeSet;

use anyhow::{anyhow, bail};
use callboard_metadata::config::parse_host_port;
use callboard_protocol::Uuid;

use super::checkpoint::FirstVoter;

/// A random id. None starts with a dash, which a command line would take for an option, and none is reserved.
///
/// # Errors
/// The system gives no random bytes.
pub fn random_uuid() -> anyhow::Result<Uuid> {
    loop {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| anyhow!("no random bytes: {error}"))?;
        // Version 4 of the variant RFC 9562 describes.
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let id = Uuid::from_bytes(bytes);
        if !id.to_string().starts_with('-') {
            return Ok(id);
        }
    }
}

/// A random salt of letters and digits.
///
/// # Errors
/// The system gives no random bytes.
pub fn random_salt() -> anyhow::Result<Vec<u8>> {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let mut bytes = [0_u8; 26];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("no random bytes: {error}"))?;
    Ok(bytes.iter().map(|byte| ALPHABET[usize::from(byte % 32)]).collect())
}

/// Reads `id@host:port:directory`, separated by commas. `listener` is the name of the controller listener.
///
/// # Errors
/// An entry has another form, or an id is there twice.
pub fn parse_initial_controllers(text: &str, listener: &str) -> anyhow::Result<Vec<FirstVoter>> {
    let mut ids = BTreeSet::new();
    let mut voters = Vec::new();
    for entry in text.split(',').map(str::trim) {
        let voter = parse_initial_controller(entry, listener)?;
        if !ids.insert(voter.node_id) {
            bail!("Node id {} was specified more than once.", voter.node_id);
        }
        voters.push(voter);
    }
    Ok(voters)
}

fn parse_initial_controller(entry: &str, listener: &str) -> anyhow::Result<FirstVoter> {
    let (id, rest) = entry.split_once('@').ok_or_else(|| anyhow!("No @ found in dynamic voter string."))?;
    let node_id: i32 = id.parse().map_err(|_| anyhow!("Failed to parse node id in dynamic voter string."))?;
    if node_id < 0 {
        bail!("Invalid negative node id {node_id} in dynamic voter string.");
    }
    if rest.is_empty() {
        bail!("No hostname found after node id.");
    }
    let (address, directory) = rest
        .rsplit_once(':')
        .filter(|(address, _)| address.contains(':'))
        .ok_or_else(|| anyhow!("No colon following port could be found."))?;
    let address = parse_host_port(address)
        .ok_or_else(|| anyhow!("Failed to parse host and port in dynamic voter string."))?;
    let directory_id =
        directory.parse().map_err(|_| anyhow!("Failed to parse directory ID in dynamic voter string."))?;
    Ok(FirstVoter { node_id, directory_id, listener: listener.to_owned(), address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ids_differ_and_never_look_like_an_option() {
        let ids: BTreeSet<_> = (0..500).map(|_| random_uuid().unwrap()).collect();
        assert_eq!(ids.len(), 500);
        assert!(ids.iter().all(|id| !id.to_string().starts_with('-') && id.to_string().len() == 22));
    }

    #[test]
    fn initial_controllers() {
        let one = "1@localhost:9093:3Db5QLSqSZieL3rJBUUegA";
        let voters =
            parse_initial_controllers(&format!("{one},2@[::1]:9094:4L6g3nShT-eMCtK--X86sw"), "C").unwrap();
        assert_eq!(voters[1].address.to_string(), "[::1]:9094");
        assert_eq!(voters[0].directory_id.to_string(), "3Db5QLSqSZieL3rJBUUegA");
        for (text, expected) in [
            ("abc", "No @ found in dynamic voter string."),
            ("x@h:1:3Db5QLSqSZieL3rJBUUegA", "Failed to parse node id in dynamic voter string."),
            ("1@", "No hostname found after node id."),
            ("1@h:1", "No colon following port could be found."),
            ("1@h:1:x", "Failed to parse directory ID in dynamic voter string."),
            ("1@h:x:3Db5QLSqSZieL3rJBUUegA", "Failed to parse host and port in dynamic voter string."),
        ] {
            assert_eq!(parse_initial_controllers(text, "C").unwrap_err().to_string(), expected, "{text}");
        }
        assert!(parse_initial_controllers(&format!("{one},{one}"), "C").is_err());
    }
}
