//! SCRAM credentials given to `storage format --add-scram`.

use std::collections::BTreeMap;

use anyhow::{anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256, Sha512};

/// The fewest and the most iterations.
const ITERATIONS: std::ops::RangeInclusive<u32> = 4096..=16384;

/// A mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// SCRAM-SHA-256.
    Sha256,
    /// SCRAM-SHA-512.
    Sha512,
}

impl Mechanism {
    /// The number that stands for it in a record.
    pub fn code(self) -> i8 {
        match self {
            Self::Sha256 => 1,
            Self::Sha512 => 2,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SCRAM_SHA_256",
            Self::Sha512 => "SCRAM_SHA_512",
        }
    }

    fn hmac(self, key: &[u8], data: &[&[u8]]) -> Vec<u8> {
        // HMAC takes keys of any length, so a key is never refused.
        match self {
            Self::Sha256 => Hmac::<Sha256>::new_from_slice(key).map(|mut mac| {
                data.iter().for_each(|part| mac.update(part));
                mac.finalize().into_bytes().to_vec()
            }),
            Self::Sha512 => Hmac::<Sha512>::new_from_slice(key).map(|mut mac| {
                data.iter().for_each(|part| mac.update(part));
                mac.finalize().into_bytes().to_vec()
            }),
        }
        .unwrap_or_default()
    }

    fn hash(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(data).to_vec(),
            Self::Sha512 => Sha512::digest(data).to_vec(),
        }
    }

    /// `Hi` of RFC 5802: PBKDF2 with one block.
    fn salted_password(self, password: &str, salt: &[u8], iterations: u32) -> Vec<u8> {
        let mut previous = self.hmac(password.as_bytes(), &[salt, &1_u32.to_be_bytes()]);
        let mut result = previous.clone();
        for _ in 1..iterations {
            previous = self.hmac(password.as_bytes(), &[&previous]);
            result.iter_mut().zip(&previous).for_each(|(r, p)| *r ^= p);
        }
        result
    }
}

/// A credential as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The user.
    pub name: String,
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The salt.
    pub salt: Vec<u8>,
    /// The hash of the client's key.
    pub stored_key: Vec<u8>,
    /// The server's key.
    pub server_key: Vec<u8>,
    /// The number of iterations.
    pub iterations: u32,
}

/// Reads `SCRAM-SHA-256=[name=alice,iterations=8192,salt="…",password=…]`, with `saltedpassword="…"` in place of the
/// password. `random_salt` is used where no salt is given.
///
/// # Errors
/// The text has another form.
pub fn parse(text: &str, random_salt: &[u8]) -> anyhow::Result<Credential> {
    let (mechanism, rest) = text
        .split_once('=')
        .ok_or_else(|| anyhow!("Failed to find equals sign in SCRAM argument '{text}'"))?;
    let mechanism = match mechanism {
        "SCRAM-SHA-256" => Mechanism::Sha256,
        "SCRAM-SHA-512" => Mechanism::Sha512,
        other => bail!("The add-scram mechanism {other} is not supported."),
    };
    let inner =
        rest.strip_prefix('[').ok_or_else(|| anyhow!("Expected configuration string to start with ["))?;
    let inner =
        inner.strip_suffix(']').ok_or_else(|| anyhow!("Expected configuration string to end with ]"))?;
    let mut fields = BTreeMap::new();
    for entry in inner.split(',') {
        let (key, value) = entry.split_once('=').ok_or_else(|| anyhow!("Expected key=value in {entry}"))?;
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
        fields.insert(key.trim(), value);
    }
    let name =
        fields.remove("name").ok_or_else(|| anyhow!("You must supply 'name' to add-scram"))?.to_owned();
    if fields.contains_key("saltedpassword") && !fields.contains_key("salt") {
        bail!("You must supply 'salt' with 'saltedpassword' to add-scram");
    }
    let salt = match fields.remove("salt") {
        Some(text) => STANDARD.decode(text).map_err(|_| anyhow!("Failed to decode given salt: {text}"))?,
        None => random_salt.to_vec(),
    };
    let iterations = parse_iterations(fields.remove("iterations"), mechanism)?;
    let salted = match (fields.remove("saltedpassword"), fields.remove("password")) {
        (Some(text), _) => {
            STANDARD.decode(text).map_err(|_| anyhow!("Failed to decode given saltedPassword: {text}"))?
        }
        (None, Some(password)) => mechanism.salted_password(password, &salt, iterations),
        (None, None) => bail!("You must supply one of 'password' or 'saltedpassword' to add-scram"),
    };
    if !fields.is_empty() {
        bail!("Unknown SCRAM configurations: {}", fields.into_keys().collect::<Vec<_>>().join(", "));
    }
    let stored_key = mechanism.hash(&mechanism.hmac(&salted, &[b"Client Key"]));
    let server_key = mechanism.hmac(&salted, &[b"Server Key"]);
    Ok(Credential { name, mechanism, salt, stored_key, server_key, iterations })
}

fn parse_iterations(text: Option<&str>, mechanism: Mechanism) -> anyhow::Result<u32> {
    let Some(text) = text else { return Ok(*ITERATIONS.start()) };
    let iterations: u32 = text.parse().map_err(|_| anyhow!("For input string: \"{text}\""))?;
    let name = mechanism.name();
    if iterations < *ITERATIONS.start() {
        bail!("The 'iterations' value must be >= {} for add-scram using {name}", ITERATIONS.start());
    }
    if iterations > *ITERATIONS.end() {
        bail!("The 'iterations' value must be <= {} for add-scram using {name}", ITERATIONS.end());
    }
    Ok(iterations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> (String, String) {
        let credential = parse(text, b"random").unwrap();
        (STANDARD.encode(&credential.stored_key), STANDARD.encode(&credential.server_key))
    }

    // The keys that Kafka 4.4.0's storage tool wrote for the same arguments.
    #[test]
    fn keys_are_kafkas() {
        let sha256 = "SCRAM-SHA-256=[name=alice,salt=\"MWx2NHBkbnc0ZndxN25vdGN4bTB5Y29vNGs=\",iterations=8192,\
                      password=\"alice-secret\"]";
        assert_eq!(
            keys(sha256),
            (
                "ve2iwD+ab2ktNZTjqQsZV6nPRDSxdBzmeEyzJCHhgEU=".to_owned(),
                "eJkeff5agcas9W3BnE0vLDvklZcEM/+2DGTtqvJOlIQ=".to_owned()
            )
        );
        let sha512 = "SCRAM-SHA-512=[name=a,iterations=8192,salt=\"MWx2NHBkbnc0ZndxN25vdGN4bTB5Y29vNGs=\",\
                      password=\"p\"]";
        assert_eq!(
            keys(sha512),
            (
                "ze1NhQuQ9QOw/Sr5k0v6PxfvgsJjXpEcFUM7Qjhj43NcLGMlCvL3blXIdvDt/HF+VgfsngP6JL1ZJlnp0w3ELQ=="
                    .to_owned(),
                "14lWqiB096NDTecBOqFGA9LEU0zwhTSVfOw2Pd7Zmqn7VnqyxVSfijr9bbS87FH2tFq/hoFr1+fBxJa4tkWv2w=="
                    .to_owned()
            )
        );
        let salted = "SCRAM-SHA-512=[name=alice,iterations=8192,salt=\"N3E=\",saltedpassword=\"YCE=\"]";
        assert_eq!(
            keys(salted),
            (
                "cXajSfkesuEdmelXMIE1FvL2RXPfwlrmGKyq6ai/1my6GnQBkALTiDfj8bysiAAVsysjd15xpW2sEiappLOxvQ=="
                    .to_owned(),
                "TGF8Dt3uWsZYXy+/UBt86VtHDWvwHxtUnCY8GKG1QG6muF9I08fZ3MQ0cupwRZ2uY6KK9INaZHi4OxHCDwYMBw=="
                    .to_owned()
            )
        );
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (text, expected) in [
            ("x", "Failed to find equals sign in SCRAM argument 'x'"),
            ("SCRAM-SHA-1=[name=a,password=b]", "The add-scram mechanism SCRAM-SHA-1 is not supported."),
            ("SCRAM-SHA-256=name=a", "Expected configuration string to start with ["),
            ("SCRAM-SHA-256=[password=b]", "You must supply 'name' to add-scram"),
            ("SCRAM-SHA-256=[name=a]", "You must supply one of 'password' or 'saltedpassword' to add-scram"),
            (
                "SCRAM-SHA-256=[name=a,saltedpassword=YWJj]",
                "You must supply 'salt' with 'saltedpassword' to add-scram",
            ),
            ("SCRAM-SHA-256=[name=a,password=b,foo=1]", "Unknown SCRAM configurations: foo"),
            ("SCRAM-SHA-256=[name=a,password=b,salt=!!]", "Failed to decode given salt: !!"),
            (
                "SCRAM-SHA-256=[name=a,password=b,iterations=4095]",
                "The 'iterations' value must be >= 4096 for add-scram using SCRAM_SHA_256",
            ),
        ] {
            assert_eq!(parse(text, b"r").unwrap_err().to_string(), expected);
        }
    }
}
