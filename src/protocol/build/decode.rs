//! Rust that reads a struct.

use crate::emit::{Code, Context, default_value};
use crate::names::snake;
use crate::schema::{Field, Type, When};

/// `fn read` of one struct.
pub fn emit(code: &mut Code, fields: &[Field], context: Context) {
    code.line("fn read(r: &mut Reader<'_>, version: i16) -> Result<Self, DecodeError> {");
    context.declare_flexible(code);
    for field in fields.iter().filter(|f| f.tag.is_none()) {
        let read = read_field(field, context);
        let value = match field.versions.within(context.versions) {
            When::Always => read,
            When::Never => default_value(field),
            When::If(condition) => format!("if {condition} {{ {read} }} else {{ {} }}", default_value(field)),
        };
        code.line(format!("let {} = {value};", local(field)));
    }
    tagged(code, fields, context);
    let named = |field: &Field| match (snake(&field.name), local(field)) {
        (name, local) if name == local => name,
        (name, local) => format!("{name}: {local}"),
    };
    let mut names: Vec<String> = fields.iter().map(named).collect();
    if context.when_flexible() != When::Never {
        names.push("unknown_tagged_fields".to_owned());
    }
    code.line(format!("Ok(Self {{ {} }})", names.join(", ")));
    code.line("}");
}

fn tagged(code: &mut Code, fields: &[Field], context: Context) {
    let known: Vec<&Field> = fields.iter().filter(|f| f.tag.is_some()).collect();
    for field in &known {
        code.line(format!("let mut {} = {};", local(field), default_value(field)));
    }
    let (open, close) = match context.when_flexible() {
        When::Never => return,
        When::Always => ("", ";"),
        When::If(_) => ("if flexible { ", " } else { Vec::new() };"),
    };
    if known.is_empty() {
        code.line(format!("let unknown_tagged_fields = {open}r.unknown_tagged_fields()?{close}"));
        return;
    }
    code.line(format!("let unknown_tagged_fields = {open}r.tagged_fields(|tag, r| {{"));
    code.line("match tag {");
    for field in known {
        let tag = field.tag.unwrap_or_default();
        let guard = match field.tagged.within(context.versions.and(context.flexible)) {
            When::If(condition) => format!(" if {condition}"),
            _ => String::new(),
        };
        code.line(format!("{tag}{guard} => {} = {},", local(field), read_field(field, context)));
    }
    code.line("_ => return Ok(false),");
    code.line("}");
    code.line("Ok(true)");
    code.line(format!("}})?{close}"));
}

/// The expression that reads one field, present.
fn read_field(field: &Field, context: Context) -> String {
    let present = field.versions.and(context.versions);
    let always_option = field.field_type == Type::Records;
    match field.nullable.within(present) {
        When::Always => read_value(field, context, true),
        When::Never if always_option || field.is_option() => {
            format!("Some({})", read_value(field, context, false))
        }
        When::Never => read_value(field, context, false),
        When::If(condition) => format!(
            "if {condition} {{ {} }} else {{ Some({}) }}",
            read_value(field, context, true),
            read_value(field, context, false)
        ),
    }
}

fn read_value(field: &Field, context: Context, nullable: bool) -> String {
    let flexible = if field.tag.is_some() { "true" } else { context.flexible(field) };
    let prefix = if nullable { "nullable_" } else { "" };
    match &field.field_type {
        Type::Fixed(name) => format!("r.{}()?", snake(name)),
        Type::String => format!("r.{prefix}string({flexible})?"),
        Type::Bytes => format!("r.{prefix}bytes({flexible})?"),
        Type::Records => format!("r.{prefix}records({flexible})?"),
        Type::Struct(_) if nullable && field.tag.is_some() => {
            "r.nullable_tagged_structure(version)?".to_owned()
        }
        Type::Struct(_) if nullable => "r.nullable_structure(version)?".to_owned(),
        Type::Struct(name) => format!("{name}::read(r, version)?"),
        Type::Array(element) if matches!(**element, Type::Struct(_)) => {
            format!("r.{prefix}structures(version, {flexible})?")
        }
        Type::Array(_) => format!("r.{prefix}array({flexible})?"),
    }
}

/// The variable a field is read into: not one of those the function has already.
fn local(field: &Field) -> String {
    let name = snake(&field.name);
    if ["version", "flexible", "r", "tag"].contains(&name.as_str()) { format!("field_{name}") } else { name }
}
