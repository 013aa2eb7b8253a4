//! APIs that are advertised but not built yet. Each answers at once, in every
//! version, with UNSUPPORTED_VERSION wherever the response has room for it, so
//! that no client waits for an answer. This folder only shrinks.

mod admin;
mod groups;
mod shares;

pub use admin::*;
pub use groups::*;
pub use shares::*;

use callboard_protocol::{ByteString, ErrorCode};

/// The error of all of them: not retriable, so that clients report it.
const CODE: i16 = ErrorCode::UnsupportedVersion as i16;

fn message() -> Option<ByteString> {
    Some(ByteString::from_static("This broker does not support the API yet."))
}

/// Handlers whose response has one error at its top, with or without a message.
macro_rules! refuse_at_top {
    ($($name:ident $request:ident $response:ident $($message:ident)?;)*) => {$(
        /// Refused as a whole.
        pub async fn $name(
            _: &super::super::RequestContext,
            _: callboard_protocol::messages::$request,
            _: i16,
        ) -> callboard_protocol::messages::$response {
            callboard_protocol::messages::$response {
                error_code: super::CODE,
                $($message: super::message(),)?
                ..Default::default()
            }
        }
    )*};
}

/// Handlers whose response has one error for each item of a list of names.
macro_rules! refuse_each {
    ($($name:ident $request:ident.$items:ident => $response:ident.$results:ident: $module:ident::$item:ident.$key:ident $(($wrap:path))? $($message:ident)?;)*) => {$(
        /// Refused item by item.
        pub async fn $name(
            _: &super::super::RequestContext,
            request: callboard_protocol::messages::$request,
            _: i16,
        ) -> callboard_protocol::messages::$response {
            let refuse = |key| callboard_protocol::messages::$module::$item {
                $key: $($wrap)?(key),
                error_code: super::CODE,
                $($message: super::message(),)?
                ..Default::default()
            };
            callboard_protocol::messages::$response {
                $results: request.$items.into_iter().map(refuse).collect(),
                ..Default::default()
            }
        }
    )*};
}

/// Handlers whose response has one error for each partition of each topic, named in the same way as the request.
macro_rules! refuse_partitions {
    ($($name:ident $request:ident.$items:ident => $response:ident.$results:ident: $module:ident::{$topic:ident, $partition:ident}
        [$($from:ident => $to:ident),*] $get:expr => $index:ident $($message:ident)?;)*) => {$(
        /// Refused partition by partition.
        pub async fn $name(
            _: &super::super::RequestContext,
            request: callboard_protocol::messages::$request,
            _: i16,
        ) -> callboard_protocol::messages::$response {
            use callboard_protocol::messages::$module::{$partition, $topic};
            let results = request.$items.into_iter().map(|topic| $topic {
                $($to: topic.$from,)*
                partitions: topic
                    .partitions
                    .iter()
                    .map($get)
                    .map(|index| $partition {
                        $index: index,
                        error_code: super::CODE,
                        $($message: super::message(),)?
                        ..Default::default()
                    })
                    .collect(),
                ..Default::default()
            });
            callboard_protocol::messages::$response { $results: results.collect(), ..Default::default() }
        }
    )*};
}

use {refuse_at_top, refuse_each, refuse_partitions};
