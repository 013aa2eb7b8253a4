//! RE2's syntax, which Kafka has, in that of the `regex` crate.
//!
//! The two are nearly the same: neither has look-around nor back references. This takes what only RE2 writes (`\Q…\E`,
//! literal braces, octal numbers), says in the crate's terms what both write but mean differently (sets within sets,
//! `\<`), and refuses what only the crate takes (`a**`, `\u0061`, other flags).

use std::iter::Peekable;
use std::str::Chars;

/// The most that a repetition may count to, as in RE2.
const MAX_REPEAT: u32 = 1000;

struct Translator<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
    /// Whether the last thing was a repetition: another one must not follow.
    after_repetition: bool,
}

/// Translates a pattern. What is wrong with it in both syntaxes is left for the crate to say.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator {
        rest: pattern.chars().peekable(),
        out: String::with_capacity(pattern.len()),
        after_repetition: false,
    };
    while let Some(c) = translator.rest.next() {
        translator.one(c)?;
    }
    Ok(translator.out)
}

impl Translator<'_> {
    fn one(&mut self, c: char) -> Result<(), String> {
        match c {
            '\\' => self.escape(false)?,
            '[' => self.class()?,
            '(' => self.group()?,
            '*' | '+' | '?' => return self.repetition(&c.to_string()),
            '{' => match self.counted()? {
                Some(counted) => return self.repetition(&counted),
                None => self.out.push_str(r"\{"),
            },
            _ => self.out.push(c),
        }
        self.after_repetition = false;
        Ok(())
    }

    fn repetition(&mut self, operator: &str) -> Result<(), String> {
        if self.after_repetition {
            return Err(format!("invalid nested repetition operator: `{operator}`"));
        }
        self.out.push_str(operator);
        if self.rest.next_if_eq(&'?').is_some() {
            self.out.push('?');
        }
        self.after_repetition = true;
        Ok(())
    }

    /// The counted repetition that begins after a brace; `None` if the brace stands for itself.
    fn counted(&mut self) -> Result<Option<String>, String> {
        let mut ahead = self.rest.clone();
        let mut inner = String::new();
        loop {
            match ahead.next() {
                Some('}') => break,
                Some(c) if c.is_ascii_digit() || c == ',' => inner.push(c),
                _ => return Ok(None),
            }
        }
        let (least, most) = inner.split_once(',').unwrap_or((&inner, ""));
        if least.is_empty() || most.contains(',') {
            return Ok(None);
        }
        for count in [least, most].into_iter().filter(|count| !count.is_empty()) {
            if !count.parse::<u32>().is_ok_and(|count| count <= MAX_REPEAT) {
                return Err(format!("invalid repeat count: `{{{inner}}}`"));
            }
        }
        self.rest = ahead;
        Ok(Some(format!("{{{inner}}}")))
    }

    /// What comes after a backslash.
    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(c) = self.rest.next() else { return Err(r"trailing \".to_owned()) };
        match c {
            'Q' if !in_class => self.quoted(),
            // The end of a quotation that never began.
            'E' if !in_class => {}
            'u' | 'U' => return Err(format!(r"invalid escape sequence: `\{c}`")),
            '<' | '>' => self.out.push(c),
            '0'..='7' => self.octal(c)?,
            'p' | 'P' | 'x' => {
                self.out.push('\\');
                self.out.push(c);
                self.braced();
            }
            _ => {
                self.out.push('\\');
                self.out.push(c);
            }
        }
        Ok(())
    }

    /// The name or number in braces that may come after `\p` and `\x`.
    fn braced(&mut self) {
        if self.rest.peek() == Some(&'{') {
            for c in self.rest.by_ref() {
                self.out.push(c);
                if c == '}' {
                    return;
                }
            }
        }
    }

    /// `\0`, `\07` or `\123`; a single digit but 0 would be a back reference.
    fn octal(&mut self, first: char) -> Result<(), String> {
        let mut digits = String::from(first);
        while digits.len() < 3
            && let Some(digit) = self.rest.next_if(|c| ('0'..='7').contains(c))
        {
            digits.push(digit);
        }
        if digits.len() == 1 && first != '0' {
            return Err(format!(r"invalid escape sequence: `\{first}`"));
        }
        let code = u32::from_str_radix(&digits, 8).unwrap_or_default();
        self.out.push_str(&format!(r"\x{{{code:x}}}"));
        Ok(())
    }

    fn quoted(&mut self) {
        while let Some(c) = self.rest.next() {
            if c == '\\' && self.rest.next_if_eq(&'E').is_some() {
                return;
            }
            self.out.push_str(&regex::escape(&c.to_string()));
        }
    }

    /// A set of characters. Within it the crate knows operators and further sets, RE2 only names as `[:alpha:]`.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        // A closing bracket at the start stands for itself.
        if self.rest.next_if_eq(&']').is_some() {
            self.out.push_str(r"\]");
        }
        while let Some(c) = self.rest.next() {
            match c {
                ']' => {
                    self.out.push(']');
                    return Ok(());
                }
                '\\' => self.escape(true)?,
                '[' if self.rest.peek() == Some(&':') => self.named_class()?,
                '[' | '&' | '~' => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                _ => self.out.push(c),
            }
        }
        Err("missing closing ]".to_owned())
    }

    fn named_class(&mut self) -> Result<(), String> {
        self.out.push('[');
        while let Some(c) = self.rest.next() {
            self.out.push(c);
            if c == ':' && self.rest.next_if_eq(&']').is_some() {
                self.out.push(']');
                return Ok(());
            }
            if c == ']' {
                break;
            }
        }
        Err("invalid character class".to_owned())
    }

    /// The start of a group. Its flags are those of RE2.
    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        self.out.push('?');
        match self.rest.peek() {
            // A name, or a look-behind, which the crate refuses.
            Some('P' | '<') => {
                while let Some(c) = self.rest.next_if(|c| *c != '>' && *c != ')') {
                    self.out.push(c);
                }
                Ok(())
            }
            _ => {
                while let Some(c) = self.rest.next_if(|c| !matches!(c, ':' | ')')) {
                    if !matches!(c, 'i' | 'm' | 's' | 'U' | '-') {
                        return Err(format!("invalid or unsupported Perl syntax: `(?{c}`"));
                    }
                    self.out.push(c);
                }
                Ok(())
            }
        }
    }
}
