//! The error codes a response can carry.

macro_rules! error_codes {
    ($($name:ident = $code:literal, $kafka:literal, $retriable:literal, $message:literal;)*) => {
        /// An error code of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ErrorCode {
            $(#[doc = concat!("`", $kafka, "`: ", $message)] $name = $code,)*
        }

        impl ErrorCode {
            /// Every error code, ordered.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$name,)*];

            /// Kafka's name of the error.
            pub fn name(self) -> &'static str {
                match self { $(ErrorCode::$name => $kafka,)* }
            }

            /// Whether a client may just try again.
            pub fn is_retriable(self) -> bool {
                match self { $(ErrorCode::$name => $retriable,)* }
            }

            /// The message a client sees when there is no better one.
            pub fn message(self) -> &'static str {
                match self { $(ErrorCode::$name => $message,)* }
            }
        }

        impl From<i16> for ErrorCode {
            /// The error of a code; an unknown code is an unknown error, as Kafka's clients have it.
            fn from(code: i16) -> ErrorCode {
                match code {
                    $($code => ErrorCode::$name,)*
                    _ => ErrorCode::UnknownServerError,
                }
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/error_code.rs"));

impl ErrorCode {
    /// The code.
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// Whether this is an error at all.
    pub fn is_error(self) -> bool {
        self != ErrorCode::None
    }
}

impl From<ErrorCode> for i16 {
    fn from(error: ErrorCode) -> i16 {
        error.code()
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
