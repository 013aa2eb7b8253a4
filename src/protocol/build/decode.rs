//! Rust that reads a struct: each field into its place, where an array's element already stands.

use crate::emit::{Code, Context};
use crate::names::snake;
use crate::schema::{Field, Type, When};

/// `fn read` of one struct.
pub fn emit(code: &mut Code, fields: &[Field], context: Context) {
    code.line("fn read(&mut self, r: &mut Reader<'_>, version: i16) -> Result<(), DecodeError> {");
    context.declare_flexible(code);
    for field in fields.iter().filter(|f| f.tag.is_none()) {
        match field.versions.within(context.versions) {
            When::Always => code.line(read_field(field, context)),
            When::Never => {}
            When::If(condition) => {
                code.line(format!("if {condition} {{"));
                code.line(read_field(field, context));
                code.line("}");
            }
        }
    }
    tagged(code, fields, context);
    code.line("Ok(())");
    code.line("}");
}

fn tagged(code: &mut Code, fields: &[Field], context: Context) {
    let when = context.when_flexible();
    if when == When::Never {
        return;
    }
    if let When::If(_) = when {
        code.line("if flexible {");
    }
    let known: Vec<&Field> = fields.iter().filter(|f| f.tag.is_some()).collect();
    if known.is_empty() {
        code.line("r.read_unknown_tagged_fields(&mut self.unknown_tagged_fields)?;");
    } else {
        code.line("r.read_tagged_fields(&mut self.unknown_tagged_fields, |tag, r| {");
        code.line("match tag {");
        for field in known {
            let tag = field.tag.unwrap_or_default();
            let guard = match field.tagged.within(context.versions.and(context.flexible)) {
                When::If(condition) => format!(" if {condition}"),
                _ => String::new(),
            };
            code.line(format!("{tag}{guard} => {{"));
            code.line(read_field(field, context));
            code.line("}");
        }
        code.line("_ => return Ok(false),");
        code.line("}");
        code.line("Ok(true)");
        code.line("})?;");
    }
    if let When::If(_) = when {
        code.line("}");
    }
}

/// The statement that reads one field, present.
fn read_field(field: &Field, context: Context) -> String {
    let place = format!("self.{}", snake(&field.name));
    let not_nullable = field.nullable.outside(field.versions.and(context.versions));
    let flexible = if field.tag.is_some() { "true" } else { context.flexible(field) };
    let prefix = if field.is_option() { "nullable_" } else { "" };
    let read = match &field.field_type {
        Type::Fixed(name) => format!("{place} = r.{}()?;", snake(name)),
        Type::String => format!("r.read_{prefix}string(&mut {place}, {flexible})?;"),
        Type::Bytes => format!("r.read_{prefix}bytes(&mut {place}, {flexible})?;"),
        Type::Records => format!("r.read_{prefix}records(&mut {place}, {flexible})?;"),
        Type::Struct(_) if field.is_option() && field.tag.is_some() => {
            format!("{place} = r.nullable_tagged_structure(version)?;")
        }
        Type::Struct(_) if field.is_option() => format!("{place} = r.nullable_structure(version)?;"),
        Type::Struct(_) => format!("{place}.read(r, version)?;"),
        Type::Array(element) if matches!(**element, Type::Struct(_)) => {
            format!("r.read_{prefix}structures(&mut {place}, version, {flexible})?;")
        }
        Type::Array(_) => format!("r.read_{prefix}array(&mut {place}, {flexible})?;"),
    };
    match not_nullable {
        When::Always if field.is_option() => format!("{read} DecodeError::not_null(&{place})?;"),
        When::If(condition) => format!("{read} if {condition} {{ DecodeError::not_null(&{place})?; }}"),
        _ => read,
    }
}
