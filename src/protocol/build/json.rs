//! Rust that turns a struct into Kafka's JSON form and back (feature `json`).

use crate::emit::{Code, Context, both, default_value, differs};
use crate::encode::refuse_absent;
use crate::names::{camel, snake};
use crate::schema::{Field, When};

/// The `JsonForm` implementation of one struct.
pub fn emit(code: &mut Code, name: &str, fields: &[Field], context: Context) {
    code.line(format!("impl JsonForm for {name} {{"));
    code.line("fn to_json(&self, version: i16) -> Result<Value, EncodeError> {");
    code.line(if fields.is_empty() {
        "let object = Object::new();"
    } else {
        "let mut object = Object::new();"
    });
    for field in fields {
        let place = format!("self.{}", snake(&field.name));
        let when = field.versions.within(context.versions);
        let condition = match (&when, field.tag) {
            (_, Some(_)) => Some(both(&when, &differs(field, &place))),
            (When::Always, None) => None,
            (When::Never, None) => Some("false".to_owned()),
            (When::If(condition), None) => Some(condition.clone()),
        };
        if let Some(condition) = &condition {
            code.line(format!("if {condition} {{"));
        }
        code.line(format!("put(&mut object, {:?}, &{place}, version)?;", camel(&field.name)));
        if condition.is_some() {
            code.line("}");
        }
        refuse_absent(code, field, field.versions, context);
    }
    code.line("Ok(Value::Object(object))");
    code.line("}");
    code.line("");
    code.line("fn from_json(value: &Value, version: i16) -> Result<Self, JsonError> {");
    code.line("let object = as_object(value)?;");
    code.line("Ok(Self {");
    for field in fields {
        let default = default_value(field);
        let get = match field.tag {
            Some(_) => format!("take_or(object, {:?}, version, {default})?", camel(&field.name)),
            None => format!("take(object, {:?}, version)?", camel(&field.name)),
        };
        let value = match field.versions.within(context.versions) {
            When::Always => get,
            When::Never => default,
            When::If(condition) => format!("if {condition} {{ {get} }} else {{ {default} }}"),
        };
        code.line(format!("{}: {value},", snake(&field.name)));
    }
    if context.when_flexible() != When::Never {
        code.line("unknown_tagged_fields: UnknownTaggedFields::default(),");
    }
    code.line("})");
    code.line("}");
    code.line("}");
    code.line("");
}
