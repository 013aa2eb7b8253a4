//! Kafka's UUIDs: 16 bytes, written as 22 characters of base64url.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A UUID. Ordered as Kafka orders them: by the two halves as signed 64-bit numbers.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Uuid([u8; 16]);

/// A text that is not a UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a UUID in base64url")]
pub struct UuidError;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Uuid {
    /// No UUID.
    pub const ZERO: Uuid = Uuid([0; 16]);
    /// The topic id of `__cluster_metadata`.
    pub const METADATA_TOPIC_ID: Uuid = Uuid::from_u128(1);

    /// A UUID of its bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Uuid {
        Uuid(bytes)
    }

    /// A UUID of its number, big-endian.
    pub const fn from_u128(number: u128) -> Uuid {
        Uuid(number.to_be_bytes())
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The number, big-endian.
    pub const fn as_u128(&self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// Whether it is no UUID.
    pub fn is_zero(&self) -> bool {
        *self == Uuid::ZERO
    }

    fn halves(&self) -> (i64, i64) {
        let number = self.as_u128();
        ((number >> 64) as i64, number as i64)
    }
}

impl Ord for Uuid {
    fn cmp(&self, other: &Uuid) -> std::cmp::Ordering {
        self.halves().cmp(&other.halves())
    }
}

impl PartialOrd for Uuid {
    fn partial_cmp(&self, other: &Uuid) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.as_u128();
        let mut text = [0u8; 22];
        // 128 bits in groups of six from the top; the last group has two bits and four zeros.
        for (i, place) in text.iter_mut().enumerate() {
            let shift = 122 - 6 * i as i32;
            let bits = if shift >= 0 { number >> shift } else { number << -shift };
            *place = ALPHABET[(bits & 63) as usize];
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = UuidError;

    /// Reads 22 characters of base64url, or 24 with padding.
    fn from_str(text: &str) -> Result<Uuid, UuidError> {
        let digits = text.as_bytes();
        let digits = digits.strip_suffix(b"==").unwrap_or(digits);
        let (last, first) = digits.split_last().ok_or(UuidError)?;
        if first.len() != 21 {
            return Err(UuidError);
        }
        let value =
            |digit: u8| ALPHABET.iter().position(|c| *c == digit).map(|at| at as u128).ok_or(UuidError);
        let mut number = 0u128;
        for digit in first {
            number = number << 6 | value(*digit)?;
        }
        // The last digit has four bits too many.
        Ok(Uuid::from_u128(number << 2 | value(*last)? >> 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_kafka_writes_it() {
        let bytes =
            [0xc3, 0xe2, 0x75, 0xd5, 0x06, 0xab, 0x5d, 0x8e, 0xe7, 0x63, 0x1c, 0xff, 0xe7, 0x32, 0x83, 0x3f];
        let uuid = Uuid::from_bytes(bytes);
        assert_eq!(uuid.to_string(), "w-J11QarXY7nYxz_5zKDPw");
        assert_eq!("w-J11QarXY7nYxz_5zKDPw".parse(), Ok(uuid));
        assert_eq!(Uuid::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(Uuid::METADATA_TOPIC_ID.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
    }

    #[test]
    fn refuses_other_texts() {
        for text in ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAA+A"]
        {
            assert_eq!(text.parse::<Uuid>(), Err(UuidError), "{text}");
        }
    }

    #[test]
    fn is_ordered_by_signed_halves() {
        assert!(Uuid::from_u128(1 << 127) < Uuid::ZERO);
        assert!(Uuid::from_u128(1 << 63) < Uuid::ZERO);
        assert!(Uuid::ZERO < Uuid::from_u128(1));
    }
}
