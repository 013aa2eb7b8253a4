//! A text buffer that indents, and the pieces of Rust that decoding, encoding and JSON share.

use crate::schema::{DefaultValue, Field, Type, Versions, When};

/// Lines of Rust; indents by the braces it has seen.
#[derive(Default)]
pub struct Code {
    text: String,
    depth: usize,
}

impl Code {
    pub fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if line.starts_with(['}', ')', ']']) {
            self.depth = self.depth.saturating_sub(1);
        }
        if !line.is_empty() {
            self.text.extend(std::iter::repeat_n("    ", self.depth));
            self.text.push_str(line);
        }
        self.text.push('\n');
        if line.ends_with(['{', '(', '[']) {
            self.depth += 1;
        }
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

/// Where a struct stands: the versions it can be read at, and those that are flexible.
#[derive(Clone, Copy)]
pub struct Context {
    pub versions: Versions,
    pub flexible: Versions,
}

impl Context {
    /// Rust for "is this version flexible", for one field.
    pub fn flexible(&self, field: &Field) -> &'static str {
        match field.flexible.unwrap_or(self.flexible).within(self.versions) {
            When::Always => "true",
            When::Never => "false",
            When::If(_) => "flexible",
        }
    }

    pub fn when_flexible(&self) -> When {
        self.flexible.within(self.versions)
    }

    /// Declares `flexible` where it depends on the version.
    pub fn declare_flexible(&self, code: &mut Code) {
        if let When::If(condition) = self.when_flexible() {
            code.line(format!("let flexible = {condition};"));
        }
    }
}

/// The Rust type of a field.
pub fn rust_type(field: &Field) -> String {
    let plain = plain_type(&field.field_type);
    if field.is_option() { format!("Option<{plain}>") } else { plain }
}

fn plain_type(field_type: &Type) -> String {
    match field_type {
        Type::Fixed(name) => (*name).to_owned(),
        Type::String => "ByteString".to_owned(),
        Type::Bytes => "Bytes".to_owned(),
        Type::Records => "Records".to_owned(),
        Type::Struct(name) => name.clone(),
        Type::Array(element) => format!("Vec<{}>", plain_type(element)),
    }
}

/// Rust for a field's default.
pub fn default_value(field: &Field) -> String {
    if field.default == DefaultValue::Null || field.field_type == Type::Records {
        return "None".to_owned();
    }
    let value = match (&field.field_type, &field.default) {
        (Type::String, DefaultValue::Text(text)) => format!("ByteString::from_static({text:?})"),
        (_, DefaultValue::Bool(flag)) => flag.to_string(),
        (_, DefaultValue::Number(number)) => number.clone(),
        (Type::Fixed("bool"), _) => "false".to_owned(),
        (Type::Fixed("f64"), _) => "0.0".to_owned(),
        (Type::Fixed("Uuid"), _) => "Uuid::ZERO".to_owned(),
        (Type::Fixed(_), _) => "0".to_owned(),
        (Type::String, _) => "ByteString::new()".to_owned(),
        (Type::Bytes, _) => "Bytes::new()".to_owned(),
        (Type::Array(_), _) => "Vec::new()".to_owned(),
        (Type::Struct(name), _) => format!("{name}::default()"),
        (Type::Records, _) => "None".to_owned(),
    };
    if field.is_option() { format!("Some({value})") } else { value }
}

/// Whether `derive(Default)` gives the same.
pub fn default_is_of_type(field: &Field) -> bool {
    match &field.default {
        DefaultValue::Null => true,
        DefaultValue::OfType => !field.is_option() || field.field_type == Type::Records,
        DefaultValue::Bool(flag) => !flag,
        DefaultValue::Number(number) => number == "0",
        DefaultValue::Text(text) => text.is_empty() && !field.is_option(),
    }
}

/// Rust for "the field differs from its default".
pub fn differs(field: &Field, place: &str) -> String {
    compare(field, place, false)
}

/// Rust for "the field has its default".
pub fn is_default(field: &Field, place: &str) -> String {
    compare(field, place, true)
}

fn compare(field: &Field, place: &str, same: bool) -> String {
    let not = if same { "" } else { "!" };
    let equal = if same { "==" } else { "!=" };
    if field.default == DefaultValue::Null || field.field_type == Type::Records {
        return format!("{place}.{}()", if same { "is_none" } else { "is_some" });
    }
    match (&field.field_type, field.is_option()) {
        (Type::Fixed("bool"), false) => {
            let expected = field.default == DefaultValue::Bool(true);
            format!("{}{place}", if expected == same { "" } else { "!" })
        }
        (Type::Struct(_), false) => format!("{not}{place}.is_default()"),
        (Type::Fixed(_) | Type::Struct(_), _) => format!("{place} {equal} {}", default_value(field)),
        _ if matches!(field.default, DefaultValue::Text(_)) => {
            format!("{place} {equal} {}", default_value(field))
        }
        (_, true) if same => format!("{place}.as_ref().is_some_and(|v| v.is_empty())"),
        (_, true) => format!("{place}.as_ref().is_none_or(|v| !v.is_empty())"),
        (_, false) => format!("{not}{place}.is_empty()"),
    }
}

/// Joins two conditions.
pub fn both(when: &When, condition: &str) -> String {
    match when {
        When::Always => condition.to_owned(),
        When::Never => "false".to_owned(),
        When::If(version) => format!("{version} && {condition}"),
    }
}
