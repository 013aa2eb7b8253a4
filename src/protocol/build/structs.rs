//! One message's file: its structs, their defaults, and the traits around them.

use crate::emit::{Code, Context, default_is_of_type, default_value, is_default, rust_type};
use crate::names::snake;
use crate::schema::{DefaultValue, Field, Message, Type, Versions, When};
use crate::{decode, encode, json};
use std::error::Error;

/// The file of one message.
pub fn message(message: &Message, with_json: bool) -> Result<String, Box<dyn Error>> {
    let mut code = Code::default();
    let context = Context { versions: message.versions, flexible: message.flexible };
    let about = format!("`{}`, versions {}.", message.name, message.versions);
    structure(&mut code, &message.name, &about, &message.fields, context, with_json);
    for shared in &message.structs {
        let context = Context { versions: context.versions.and(shared.versions), ..context };
        let about = format!("`{}` of `{}`, used by several fields.", shared.name, message.name);
        structure(&mut code, &shared.name, &about, &shared.fields, context, with_json);
        inline_structs(&mut code, &shared.fields, context, with_json);
    }
    inline_structs(&mut code, &message.fields, context, with_json);
    message_impl(&mut code, message);
    Ok(code.into_text())
}

/// The module of one message, and its name in `messages`.
pub fn index_entry(message: &Message, module: &str) -> String {
    let name = &message.name;
    let json = "#[cfg(feature = \"json\")] #[allow(unused_imports)] use crate::json::generated::*;";
    format!(
        "/// `{name}` and its structs.\npub mod {module} {{\n    #[allow(unused_imports)]\n    use super::generated::*;\n    {json}\n    \
         include!(concat!(env!(\"OUT_DIR\"), \"/{module}.rs\"));\n}}\n#[doc(inline)]\npub use {module}::{name};\n"
    )
}

fn inline_structs(code: &mut Code, fields: &[Field], context: Context, with_json: bool) {
    for field in fields.iter().filter(|f| !f.fields.is_empty()) {
        let inner = Context { versions: context.versions.and(field.versions), ..context };
        let element = match &field.field_type {
            Type::Array(element) => element,
            other => other,
        };
        if let Type::Struct(name) = element {
            let about = format!("What `{}` holds.", field.name);
            structure(code, name, &about, &field.fields, inner, with_json);
        }
        inline_structs(code, &field.fields, inner, with_json);
    }
}

fn structure(code: &mut Code, name: &str, about: &str, fields: &[Field], context: Context, with_json: bool) {
    let derives_default = fields.iter().all(default_is_of_type);
    let flexible = context.when_flexible() != When::Never;
    code.line(format!("/// {about}"));
    let default = if derives_default { ", Default" } else { "" };
    code.line(format!("#[derive(Clone, Debug, PartialEq{default})]"));
    code.line(format!("pub struct {name} {{"));
    for field in fields {
        code.line(format!("/// {}", about_field(field)));
        code.line(format!("pub {}: {},", snake(&field.name), rust_type(field)));
    }
    if flexible {
        code.line("/// Tagged fields that are none of the above.");
        code.line("pub unknown_tagged_fields: UnknownTaggedFields,");
    }
    code.line("}");
    code.line("");
    if !derives_default {
        code.line(format!("impl Default for {name} {{"));
        code.line("#[inline]");
        code.line("fn default() -> Self {");
        code.line("Self {");
        for field in fields {
            code.line(format!("{}: {},", snake(&field.name), default_value(field)));
        }
        if flexible {
            code.line("unknown_tagged_fields: UnknownTaggedFields::default(),");
        }
        for _ in 0..3 {
            code.line("}");
        }
        code.line("");
    }
    code.line(format!("impl {name} {{"));
    code.line("/// Whether every field has its default.");
    code.line("pub fn is_default(&self) -> bool {");
    let mut same: Vec<String> =
        fields.iter().map(|f| is_default(f, &format!("self.{}", snake(&f.name)))).collect();
    if flexible {
        same.push("self.unknown_tagged_fields.is_empty()".to_owned());
    }
    code.line(if same.is_empty() { "true".to_owned() } else { same.join(" && ") });
    code.line("}");
    code.line("}");
    code.line("");
    code.line(format!("impl Structure for {name} {{"));
    decode::emit(code, fields, context);
    code.line("");
    encode::emit(code, fields, context);
    code.line("}");
    code.line("");
    if with_json {
        json::emit(code, name, fields, context);
    }
}

fn about_field(field: &Field) -> String {
    let mut about = format!(
        "`{}`: {}, versions {}",
        field.name,
        field.type_name.replace("[]", "array of "),
        field.versions
    );
    if let Some(tag) = field.tag {
        about.push_str(&format!(", tag {tag}"));
    }
    if !field.nullable.is_empty() {
        about.push_str(&format!(", nullable in {}", field.nullable));
    }
    match &field.default {
        DefaultValue::OfType => {}
        DefaultValue::Null => about.push_str(", null by default"),
        DefaultValue::Bool(flag) => about.push_str(&format!(", {flag} by default")),
        DefaultValue::Number(number) => about.push_str(&format!(", {number} by default")),
        DefaultValue::Text(text) => about.push_str(&format!(", `{text}` by default")),
    }
    if field.map_key {
        about.push_str(", a key of the array");
    }
    about + "."
}

fn message_impl(code: &mut Code, message: &Message) {
    let Message { name, versions, .. } = message;
    let Versions { lo, hi } = *versions;
    let key = message.api_key.map_or("None".to_owned(), |key| format!("Some({key})"));
    code.line(format!("impl Message for {name} {{"));
    code.line(format!("const NAME: &'static str = {name:?};"));
    code.line(format!("const API_KEY: Option<i16> = {key};"));
    code.line(format!("const MIN_VERSION: i16 = {lo};"));
    code.line(format!("const MAX_VERSION: i16 = {hi};"));
    code.line("");
    code.line("fn is_flexible(version: i16) -> bool {");
    code.line(match message.flexible.within(*versions) {
        When::Always => "true".to_owned(),
        When::Never => "false".to_owned(),
        When::If(condition) => condition,
    });
    code.line("}");
    code.line("}");
    if message.kind == "request" {
        let base = name.trim_end_matches("Request");
        code.line("");
        code.line(format!("impl Request for {name} {{"));
        code.line(format!("type Response = super::{}Response;", base));
        code.line(format!("const KEY: ApiKey = ApiKey::{base};"));
        code.line("}");
    }
}

/// A macro that names every message: `for_each_message!(callback)` calls `callback!(Name, Name, …)`.
pub fn message_list(messages: &[Message]) -> String {
    let names: Vec<&str> = messages.iter().map(|m| m.name.as_str()).collect();
    format!(
        "/// Calls a macro with the name of every message.\n#[macro_export]\nmacro_rules! for_each_message {{\n    \
         ($callback:ident) => {{ $callback! {{ {} }} }};\n}}\n",
        names.join(", ")
    )
}
