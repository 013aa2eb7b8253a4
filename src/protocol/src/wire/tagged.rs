//! Tagged fields of a struct that this protocol doesn't know.

use bytes::Bytes;
use std::ops::Deref;

/// A tagged field of a number this protocol doesn't know: kept as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawTaggedField {
    /// The tag.
    pub tag: u32,
    /// The field's bytes, without tag and size.
    pub data: Bytes,
}

/// The unknown tagged fields of a struct, in the order they came; written again in the order of their tags.
///
/// Every struct has these and next to none has any, so that none takes one word and no room elsewhere.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UnknownTaggedFields(Option<Box<List>>);

type List = (Vec<RawTaggedField>,);

impl UnknownTaggedFields {
    /// Adds a field.
    pub fn push(&mut self, field: RawTaggedField) {
        self.0.get_or_insert_default().0.push(field);
    }
}

impl Deref for UnknownTaggedFields {
    type Target = [RawTaggedField];

    #[inline]
    fn deref(&self) -> &[RawTaggedField] {
        self.0.as_deref().map_or(&[], |list| &list.0)
    }
}

impl From<Vec<RawTaggedField>> for UnknownTaggedFields {
    fn from(fields: Vec<RawTaggedField>) -> UnknownTaggedFields {
        UnknownTaggedFields((!fields.is_empty()).then(|| Box::new((fields,))))
    }
}

impl std::fmt::Debug for UnknownTaggedFields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
