//! The protocol's string.

use arrayvec::ArrayString;
use bytes::Bytes;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::str::Utf8Error;
use std::sync::Arc;

/// The longest string that stands in the value itself, in bytes.
const SHORT_BYTES: usize = 24;

/// An immutable string, cheap to clone. Up to 24 bytes stand in the value itself, as most names of topics, groups and
/// clients do; longer ones are shared. It never keeps the frame that it was read from.
#[derive(Clone)]
pub struct ByteString(Repr);

#[derive(Clone)]
enum Repr {
    Short(ArrayString<SHORT_BYTES>),
    Static(&'static str),
    Shared(Arc<str>),
}

impl ByteString {
    /// The empty string.
    pub const fn new() -> ByteString {
        ByteString(Repr::Short(ArrayString::new_const()))
    }

    /// A string of the program's own.
    pub const fn from_static(text: &'static str) -> ByteString {
        ByteString(Repr::Static(text))
    }

    /// Becomes the string that `bytes` have in UTF-8. An empty one is filled where it stands, which costs less than to
    /// build another and move it there.
    ///
    /// # Errors
    /// They are not UTF-8.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), Utf8Error> {
        let text = std::str::from_utf8(bytes)?;
        if let Repr::Short(short) = &mut self.0
            && short.is_empty()
            && short.try_push_str(text).is_ok()
        {
            return Ok(());
        }
        *self = ByteString::from(text);
        Ok(())
    }
}

impl Default for ByteString {
    #[inline]
    fn default() -> ByteString {
        ByteString::new()
    }
}

impl Deref for ByteString {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        match &self.0 {
            Repr::Short(text) => text,
            Repr::Static(text) => text,
            Repr::Shared(text) => text,
        }
    }
}

impl AsRef<str> for ByteString {
    fn as_ref(&self) -> &str {
        self
    }
}

impl AsRef<[u8]> for ByteString {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Borrow<str> for ByteString {
    fn borrow(&self) -> &str {
        self
    }
}

impl From<&str> for ByteString {
    fn from(text: &str) -> ByteString {
        ByteString(match ArrayString::from(text) {
            Ok(short) => Repr::Short(short),
            Err(_) => Repr::Shared(text.into()),
        })
    }
}

impl From<String> for ByteString {
    fn from(text: String) -> ByteString {
        ByteString::from(text.as_str())
    }
}

impl From<Box<str>> for ByteString {
    fn from(text: Box<str>) -> ByteString {
        ByteString::from(&*text)
    }
}

impl From<ByteString> for String {
    fn from(text: ByteString) -> String {
        String::from(&*text)
    }
}

impl TryFrom<Bytes> for ByteString {
    type Error = Utf8Error;

    fn try_from(bytes: Bytes) -> Result<ByteString, Utf8Error> {
        std::str::from_utf8(&bytes).map(ByteString::from)
    }
}

impl Eq for ByteString {}

impl PartialOrd for ByteString {
    fn partial_cmp(&self, other: &ByteString) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByteString {
    fn cmp(&self, other: &ByteString) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl PartialEq<str> for ByteString {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl<T: AsRef<str>> PartialEq<T> for ByteString {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Hash for ByteString {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Display for ByteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl fmt::Debug for ByteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_strings_stand_in_the_value_and_long_ones_are_shared() {
        let address = |text: &ByteString| text.as_ptr();
        let short = ByteString::from("x".repeat(24));
        assert_ne!(address(&short), address(&short.clone()));
        let long = ByteString::from("x".repeat(25));
        assert_eq!(address(&long), address(&long.clone()));
        assert_eq!(size_of::<Option<ByteString>>(), 32);
    }

    #[test]
    fn strings_are_equal_and_ordered_as_their_text_whatever_holds_it() {
        let mut read = ByteString::new();
        assert_eq!(read.read("Größe".as_bytes()), Ok(()));
        assert_eq!((&read, read.len()), (&ByteString::from_static("Größe"), 7));
        assert_eq!(read.read(&[b'y'; 30]), Ok(()));
        assert_eq!(read, "y".repeat(30));
        let mut texts = ["z".into(), read.clone(), ByteString::from_static("x")];
        texts.sort();
        assert_eq!(texts, ["x".into(), read, ByteString::from("z")]);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert!(ByteString::new().read(&[0xc3, 0x28]).is_err());
        assert!(ByteString::try_from(Bytes::from_static(&[0xff])).is_err());
    }
}
