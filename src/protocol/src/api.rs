//! The API keys, and what Kafka 4.4 serves under each: versions, headers, listeners.

use crate::wire::DecodeError;

/// What Kafka 4.4 serves under one API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiInfo {
    /// The API.
    pub key: ApiKey,
    /// The lowest version.
    pub min_version: i16,
    /// The highest stable version; below `min_version` if the API is gone.
    pub max_version: i16,
    /// The highest version, unstable ones included.
    pub max_unstable_version: i16,
    /// The request header's version of each version, as digits from the lowest up.
    request_headers: &'static str,
    /// The response header's version of each version, as digits from the lowest up.
    response_headers: &'static str,
    /// Served by brokers.
    pub on_broker: bool,
    /// Served by controllers.
    pub on_controller: bool,
    /// Needs CLUSTER_ACTION on the cluster.
    pub cluster_action: bool,
    /// A broker forwards it to the controller.
    pub forwardable: bool,
}

impl ApiInfo {
    /// Whether the version is stable and served.
    pub fn has_version(&self, version: i16) -> bool {
        (self.min_version..=self.max_version).contains(&version)
    }

    /// The request header's version. Out of the range: that of the nearest version, so that a request of an
    /// unknown version can at least be answered.
    pub fn request_header_version(&self, version: i16) -> i16 {
        self.digit(self.request_headers, version).unwrap_or(1)
    }

    /// The response header's version; out of the range, that of the nearest version.
    pub fn response_header_version(&self, version: i16) -> i16 {
        self.digit(self.response_headers, version).unwrap_or(0)
    }

    fn digit(&self, digits: &str, version: i16) -> Option<i16> {
        let last = digits.len().checked_sub(1)?;
        let at = usize::try_from(version.saturating_sub(self.min_version)).unwrap_or(0).min(last);
        digits.as_bytes().get(at).map(|digit| i16::from(digit - b'0'))
    }
}

macro_rules! api_keys {
    ($($name:ident = $key:literal, $min:literal, $max:literal, $unstable:literal, $request:literal, $response:literal,
       $broker:literal, $controller:literal, $cluster_action:literal, $forwardable:literal;)*) => {
        /// An API of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ApiKey {
            $(#[doc = concat!("API key ", $key, ".")] $name = $key,)*
        }

        impl ApiKey {
            /// The API's name, as Kafka's metrics and logs have it.
            pub fn name(self) -> &'static str {
                match self { $(ApiKey::$name => stringify!($name),)* }
            }
        }

        /// Every API, ordered by key: the key is the index.
        pub static APIS: &[ApiInfo] = &[
            $(ApiInfo {
                key: ApiKey::$name,
                min_version: $min,
                max_version: $max,
                max_unstable_version: $unstable,
                request_headers: $request,
                response_headers: $response,
                on_broker: $broker,
                on_controller: $controller,
                cluster_action: $cluster_action,
                forwardable: $forwardable,
            },)*
        ];
    };
}

include!(concat!(env!("OUT_DIR"), "/api_key.rs"));

impl ApiKey {
    /// The key's number.
    pub fn code(self) -> i16 {
        self as i16
    }

    /// What Kafka serves under the key.
    pub fn info(self) -> &'static ApiInfo {
        // The keys run from 0 without a gap, which a test holds.
        &APIS[self as usize]
    }
}

impl TryFrom<i16> for ApiKey {
    type Error = DecodeError;

    fn try_from(code: i16) -> Result<ApiKey, DecodeError> {
        let info = usize::try_from(code).ok().and_then(|at| APIS.get(at));
        info.map(|info| info.key).ok_or(DecodeError::UnknownApiKey(code))
    }
}

impl std::fmt::Display for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
