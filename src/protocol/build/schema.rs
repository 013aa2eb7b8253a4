//! The schema files, read into memory.

use serde_json::Value;
use std::error::Error;
use std::fmt;
use std::path::Path;

/// A range of versions, both ends included; empty when `lo > hi`.
#[derive(Clone, Copy, PartialEq)]
pub struct Versions {
    pub lo: i16,
    pub hi: i16,
}

impl Versions {
    pub const NONE: Versions = Versions { lo: 0, hi: -1 };

    fn parse(text: &str) -> Result<Versions, Box<dyn Error>> {
        if text.is_empty() || text == "none" {
            return Ok(Versions::NONE);
        }
        if let Some(lo) = text.strip_suffix('+') {
            return Ok(Versions { lo: lo.parse()?, hi: i16::MAX });
        }
        let (lo, hi) = text.split_once('-').unwrap_or((text, text));
        Ok(Versions { lo: lo.parse()?, hi: hi.parse()? })
    }

    pub fn is_empty(self) -> bool {
        self.lo > self.hi
    }

    pub fn and(self, other: Versions) -> Versions {
        let both = Versions { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) };
        if both.is_empty() { Versions::NONE } else { both }
    }

    /// When this range holds, for a `version` known to lie within `context`.
    pub fn within(self, context: Versions) -> When {
        let both = self.and(context);
        if both.is_empty() {
            return When::Never;
        }
        match (both.lo > context.lo, both.hi < context.hi) {
            (false, false) => When::Always,
            (true, false) => When::If(format!("version >= {}", both.lo)),
            (false, true) => When::If(format!("version <= {}", both.hi)),
            (true, true) if both.lo == both.hi => When::If(format!("version == {}", both.lo)),
            (true, true) => When::If(format!("({}..={}).contains(&version)", both.lo, both.hi)),
        }
    }

    /// When this range does not hold, for a `version` known to lie within `context`.
    pub fn outside(self, context: Versions) -> When {
        let both = self.and(context);
        match self.within(context) {
            When::Always => When::Never,
            When::Never => When::Always,
            When::If(_) if both.hi >= context.hi => When::If(format!("version < {}", both.lo)),
            When::If(_) if both.lo <= context.lo => When::If(format!("version > {}", both.hi)),
            When::If(condition) if both.lo < both.hi => When::If(format!("!{condition}")),
            When::If(_) => When::If(format!("version != {}", both.lo)),
        }
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.lo, self.hi) {
            (lo, hi) if lo > hi => write!(f, "none"),
            (lo, i16::MAX) => write!(f, "{lo}+"),
            (lo, hi) if lo == hi => write!(f, "{lo}"),
            (lo, hi) => write!(f, "{lo}-{hi}"),
        }
    }
}

/// Whether something holds for the versions at hand.
#[derive(Clone, PartialEq)]
pub enum When {
    Always,
    Never,
    /// Under this Rust condition on `version`.
    If(String),
}

#[derive(Clone, PartialEq)]
pub enum Type {
    Fixed(&'static str),
    String,
    Bytes,
    Records,
    Struct(String),
    Array(Box<Type>),
}

impl Type {
    fn parse(text: &str) -> Type {
        if let Some(element) = text.strip_prefix("[]") {
            return Type::Array(Box::new(Type::parse(element)));
        }
        match text {
            "bool" => Type::Fixed("bool"),
            "int8" => Type::Fixed("i8"),
            "int16" => Type::Fixed("i16"),
            "uint16" => Type::Fixed("u16"),
            "int32" => Type::Fixed("i32"),
            "uint32" => Type::Fixed("u32"),
            "int64" => Type::Fixed("i64"),
            "float64" => Type::Fixed("f64"),
            "uuid" => Type::Fixed("Uuid"),
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "records" => Type::Records,
            name => Type::Struct(name.to_owned()),
        }
    }
}

/// A field's default, where the schema gives one.
#[derive(Clone, PartialEq)]
pub enum DefaultValue {
    OfType,
    Null,
    Bool(bool),
    Number(String),
    Text(String),
}

pub struct Field {
    pub name: String,
    pub type_name: String,
    pub field_type: Type,
    pub versions: Versions,
    pub nullable: Versions,
    pub tagged: Versions,
    pub tag: Option<u64>,
    pub default: DefaultValue,
    pub ignorable: bool,
    pub map_key: bool,
    /// Overrides the message's flexible versions for this field alone.
    pub flexible: Option<Versions>,
    pub fields: Vec<Field>,
}

impl Field {
    pub fn is_option(&self) -> bool {
        !self.nullable.is_empty() || self.field_type == Type::Records
    }
}

pub struct Struct {
    pub name: String,
    pub versions: Versions,
    pub fields: Vec<Field>,
}

pub struct Message {
    pub name: String,
    pub kind: String,
    pub module: String,
    pub api_key: Option<i64>,
    pub versions: Versions,
    pub flexible: Versions,
    pub fields: Vec<Field>,
    pub structs: Vec<Struct>,
}

/// Every message of the folder, ordered by name.
pub fn load(folder: &Path) -> Result<Vec<Message>, Box<dyn Error>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ext| ext == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let value: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
            message(&value).map_err(|e| format!("{}: {e}", path.display()).into())
        })
        .collect()
}

fn message(value: &Value) -> Result<Message, Box<dyn Error>> {
    let structs = value.get("structs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Ok(Message {
        name: text(value, "name")?.to_owned(),
        kind: text(value, "kind")?.to_owned(),
        module: text(value, "module")?.to_owned(),
        api_key: value.get("apiKey").and_then(Value::as_i64),
        versions: Versions::parse(text(value, "versions")?)?,
        flexible: Versions::parse(text(value, "flexible")?)?,
        fields: fields(value)?,
        structs: structs
            .iter()
            .map(|s| {
                Ok(Struct {
                    name: text(s, "name")?.to_owned(),
                    versions: Versions::parse(text(s, "versions")?)?,
                    fields: fields(s)?,
                })
            })
            .collect::<Result<_, Box<dyn Error>>>()?,
    })
}

fn fields(owner: &Value) -> Result<Vec<Field>, Box<dyn Error>> {
    owner
        .get("fields")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .map(field)
        .collect()
}

fn field(value: &Value) -> Result<Field, Box<dyn Error>> {
    let versions = |key| Versions::parse(value.get(key).and_then(Value::as_str).unwrap_or_default());
    let flag = |key| value.get(key).and_then(Value::as_bool).unwrap_or(false);
    let type_name = text(value, "type")?.to_owned();
    Ok(Field {
        name: text(value, "name")?.to_owned(),
        field_type: Type::parse(&type_name),
        type_name,
        versions: versions("versions")?,
        nullable: versions("nullable")?,
        tagged: versions("tagged")?,
        tag: value.get("tag").and_then(Value::as_u64),
        default: match value.get("default") {
            None => DefaultValue::OfType,
            Some(Value::Null) => DefaultValue::Null,
            Some(Value::Bool(flag)) => DefaultValue::Bool(*flag),
            Some(Value::Number(number)) => DefaultValue::Number(number.to_string()),
            Some(Value::String(text)) => DefaultValue::Text(text.clone()),
            Some(other) => return Err(format!("a default can't be {other}").into()),
        },
        ignorable: flag("ignorable"),
        map_key: flag("mapKey"),
        flexible: value.get("flexible").map(|_| versions("flexible")).transpose()?,
        fields: fields(value)?,
    })
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, Box<dyn Error>> {
    value.get(key).and_then(Value::as_str).ok_or_else(|| format!("`{key}` is missing").into())
}
