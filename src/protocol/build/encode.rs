//! Rust that writes a struct.

use crate::emit::{Code, Context, both, differs};
use crate::names::snake;
use crate::schema::{Field, Type, Versions, When};

/// `fn write` of one struct.
pub fn emit(code: &mut Code, fields: &[Field], context: Context) {
    code.line("fn write(&self, w: &mut Writer, version: i16) -> Result<(), EncodeError> {");
    context.declare_flexible(code);
    let mut untagged: &[&Field] = &fields.iter().filter(|f| f.tag.is_none()).collect::<Vec<_>>();
    while let Some((field, rest)) = untagged.split_first() {
        let run = untagged.iter().take_while(|f| size_in_run(f, context).is_some()).count();
        if run > 1 {
            fixed_run(code, &untagged[..run], context);
            untagged = &untagged[run..];
            continue;
        }
        untagged = rest;
        let when = field.versions.within(context.versions);
        match &when {
            When::Always => code.line(write_field(field, context)),
            When::Never => {}
            When::If(condition) => {
                code.line(format!("if {condition} {{"));
                code.line(write_field(field, context));
                code.line("}");
            }
        }
        refuse_absent(code, field, field.versions, context);
    }
    tagged(code, fields, context);
    code.line("Ok(())");
    code.line("}");
}

/// The size of a field that every version has and that is always of one size.
fn size_in_run(field: &Field, context: Context) -> Option<usize> {
    match field.field_type {
        Type::Fixed(name) if field.versions.within(context.versions) == When::Always => match name {
            "bool" | "i8" => Some(1),
            "i16" | "u16" => Some(2),
            "i32" | "u32" => Some(4),
            "i64" | "f64" => Some(8),
            "Uuid" => Some(16),
            _ => None,
        },
        _ => None,
    }
}

/// Fields of fixed sizes in a row, written with one check of the room.
fn fixed_run(code: &mut Code, run: &[&Field], context: Context) {
    let size: usize = run.iter().filter_map(|f| size_in_run(f, context)).sum();
    code.line(format!("w.fixed::<{size}>(|out| {{"));
    let mut at = 0;
    for field in run {
        let end = at + size_in_run(field, context).unwrap_or_default();
        let place = place(field);
        code.line(match field.field_type {
            Type::Fixed("bool") => format!("out[{at}] = u8::from({place});"),
            Type::Fixed("Uuid") => format!("out[{at}..{end}].copy_from_slice({place}.as_bytes());"),
            _ => format!("out[{at}..{end}].copy_from_slice(&{place}.to_be_bytes());"),
        });
        at = end;
    }
    code.line("});");
}

/// A field that can't be ignored must have its default where the version lacks it.
pub fn refuse_absent(code: &mut Code, field: &Field, versions: Versions, context: Context) {
    if field.ignorable {
        return;
    }
    let condition = match versions.outside(context.versions) {
        When::Never => return,
        lacks => both(&lacks, &differs(field, &place(field))),
    };
    code.line(format!("if {condition} {{"));
    code.line(format!("return Err(EncodeError::absent({:?}, version));", field.name));
    code.line("}");
}

fn tagged(code: &mut Code, fields: &[Field], context: Context) {
    let mut known: Vec<&Field> = fields.iter().filter(|f| f.tag.is_some()).collect();
    known.sort_by_key(|f| f.tag);
    for field in &known {
        refuse_absent(code, field, field.tagged, context);
    }
    let when = context.when_flexible();
    if when == When::Never {
        return;
    }
    if let When::If(_) = when {
        code.line("if flexible {");
    }
    if known.is_empty() {
        code.line("w.unknown_tagged_fields(&self.unknown_tagged_fields)?;");
    } else {
        for field in &known {
            let has = both(
                &field.tagged.within(context.versions.and(context.flexible)),
                &differs(field, &place(field)),
            );
            code.line(format!("let has_{} = {has};", field.tag.unwrap_or_default()));
        }
        let count: Vec<String> =
            known.iter().map(|f| format!("usize::from(has_{})", f.tag.unwrap_or_default())).collect();
        code.line(format!(
            "let mut unknown = w.start_tagged_fields({}, &self.unknown_tagged_fields)?;",
            count.join(" + ")
        ));
        for field in &known {
            let tag = field.tag.unwrap_or_default();
            code.line(format!("if has_{tag} {{"));
            code.line(format!("w.tagged_field({tag}, &mut unknown, |w| {{"));
            code.line(write_field(field, context));
            code.line("Ok(())");
            code.line("})?;");
            code.line("}");
        }
        code.line("w.end_tagged_fields(unknown)?;");
    }
    if let When::If(_) = when {
        code.line("} else if !self.unknown_tagged_fields.is_empty() {");
        code.line("return Err(EncodeError::absent(\"unknown tagged fields\", version));");
        code.line("}");
    }
}

fn place(field: &Field) -> String {
    format!("self.{}", snake(&field.name))
}

/// The statement that writes one field, present.
fn write_field(field: &Field, context: Context) -> String {
    let present = field.versions.and(context.versions);
    let place = place(field);
    let required = format!("EncodeError::required(&{place}, {:?})?", field.name);
    match field.nullable.within(present) {
        When::Always => write_value(field, context, &format!("&{place}"), true),
        When::Never if field.is_option() => write_value(field, context, &required, false),
        When::Never if matches!(field.field_type, Type::Fixed(_)) => {
            write_value(field, context, &place, false)
        }
        When::Never => write_value(field, context, &format!("&{place}"), false),
        When::If(condition) => format!(
            "if {condition} {{ {} }} else {{ {} }}",
            write_value(field, context, &format!("&{place}"), true),
            write_value(field, context, &required, false)
        ),
    }
}

fn write_value(field: &Field, context: Context, place: &str, nullable: bool) -> String {
    let flexible = if field.tag.is_some() { "true" } else { context.flexible(field) };
    let prefix = if nullable { "nullable_" } else { "" };
    match &field.field_type {
        Type::Fixed(name) => format!("w.{}({place});", snake(name)),
        Type::String => format!("w.{prefix}string({place}, {flexible})?;"),
        Type::Bytes => format!("w.{prefix}bytes({place}, {flexible})?;"),
        Type::Records => format!("w.{prefix}records({place}, {flexible})?;"),
        Type::Struct(_) if nullable && field.tag.is_some() => {
            format!("w.nullable_tagged_structure({place}, version)?;")
        }
        Type::Struct(_) if nullable => format!("w.nullable_structure({place}, version)?;"),
        Type::Struct(_) => format!("{}.write(w, version)?;", place.trim_start_matches('&')),
        Type::Array(element) if matches!(**element, Type::Struct(_)) => {
            format!("w.{prefix}structures({place}, version, {flexible})?;")
        }
        Type::Array(_) => format!("w.{prefix}array({place}, {flexible})?;"),
    }
}
