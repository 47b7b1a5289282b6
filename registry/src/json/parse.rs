//! From text to tree, in one pass and without recursion.

use super::string::push_half;
use super::{Json, JsonString, Number, Object};

/// Why a text is not lossless JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` {fault}")]
pub struct Lossy {
    /// Where: `value.items[3]`.
    pub path: String,
    /// What is wrong there.
    pub fault: LossFault,
}

/// What makes a text unfit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LossFault {
    /// No JSON at all.
    #[error("is not JSON (at byte {byte})")]
    Syntax {
        /// Where it stops being JSON.
        byte: usize,
    },
    /// A number that no double says exactly, negative zero included.
    #[error("is {text}, which a double cannot hold; send a string")]
    Number {
        /// As it was written.
        text: String,
    },
    /// An object with two members of one name.
    #[error("occurs twice in its object")]
    DuplicateName,
}

enum Frame {
    Array(Vec<Json>),
    Object { members: Vec<(JsonString, Json)>, name: JsonString },
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    open: Vec<Frame>,
}

/// What stands at the present place.
enum Token {
    Value(Json),
    Opened,
}

pub(super) fn parse(text: &str) -> Result<Json, Lossy> {
    let mut parser = Parser { text, at: 0, open: Vec::new() };
    let result = parser.document();
    result.map_err(|fault| Lossy { path: parser.path(), fault })
}

impl Parser<'_> {
    fn document(&mut self) -> Result<Json, LossFault> {
        loop {
            let mut value = match self.value()? {
                Token::Value(value) => value,
                Token::Opened => continue,
            };
            // Closes every container that ends here.
            loop {
                let Some(frame) = self.open.last_mut() else { return self.end().map(|()| value) };
                match frame {
                    Frame::Array(items) => items.push(value),
                    Frame::Object { members, name } => members.push((name.clone(), value)),
                }
                self.space();
                match (self.peek(), self.open.last()) {
                    (Some(b','), Some(Frame::Array(_))) => {
                        self.at += 1;
                        break;
                    }
                    (Some(b','), Some(Frame::Object { .. })) => {
                        self.at += 1;
                        self.name()?;
                        break;
                    }
                    (Some(b']'), Some(Frame::Array(_))) | (Some(b'}'), Some(Frame::Object { .. })) => {
                        self.at += 1;
                        value = self.close()?;
                    }
                    _ => return Err(self.syntax()),
                }
            }
        }
    }

    fn end(&mut self) -> Result<(), LossFault> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.syntax()) }
    }

    /// Takes the innermost container, which is complete.
    fn close(&mut self) -> Result<Json, LossFault> {
        match self.open.pop() {
            Some(Frame::Array(items)) => Ok(Json::Array(items)),
            Some(Frame::Object { members, .. }) => {
                let names: Vec<JsonString> = members.iter().map(|(name, _)| name.clone()).collect();
                Object::from_members(members).map(Json::Object).map_err(|position| {
                    let name = names.get(position).cloned().unwrap_or_else(|| "".into());
                    self.open.push(Frame::Object { members: Vec::new(), name });
                    LossFault::DuplicateName
                })
            }
            None => Err(self.syntax()),
        }
    }

    fn value(&mut self) -> Result<Token, LossFault> {
        self.space();
        let value = match self.peek() {
            Some(b'{') => {
                self.at += 1;
                self.space();
                if self.peek() != Some(b'}') {
                    self.open.push(Frame::Object { members: Vec::new(), name: "".into() });
                    self.name()?;
                    return Ok(Token::Opened);
                }
                self.at += 1;
                Json::Object(Object::default())
            }
            Some(b'[') => {
                self.at += 1;
                self.space();
                if self.peek() != Some(b']') {
                    self.open.push(Frame::Array(Vec::new()));
                    return Ok(Token::Opened);
                }
                self.at += 1;
                Json::Array(Vec::new())
            }
            Some(b'"') => Json::String(self.string()?),
            Some(b't') => self.word("true", Json::Bool(true))?,
            Some(b'f') => self.word("false", Json::Bool(false))?,
            Some(b'n') => self.word("null", Json::Null)?,
            Some(b'-' | b'0'..=b'9') => Json::Number(self.number()?),
            _ => return Err(self.syntax()),
        };
        Ok(Token::Value(value))
    }

    /// Reads `"name":` into the innermost object.
    fn name(&mut self) -> Result<(), LossFault> {
        self.space();
        let read = self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.syntax());
        }
        self.at += 1;
        if let Some(Frame::Object { name, .. }) = self.open.last_mut() {
            *name = read;
        }
        Ok(())
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, LossFault> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.syntax());
        }
        self.at += word.len();
        Ok(value)
    }

    fn digits(&mut self) -> usize {
        let begun = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - begun
    }

    fn number(&mut self) -> Result<Number, LossFault> {
        let begun = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        if whole == 0 || (leading_zero && whole > 1) {
            return Err(self.syntax());
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.syntax());
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.syntax());
            }
        }
        let text = &self.text[begun..self.at];
        Number::from_grammatical(text).ok_or_else(|| LossFault::Number { text: text.to_owned() })
    }

    fn string(&mut self) -> Result<JsonString, LossFault> {
        if self.peek() != Some(b'"') {
            return Err(self.syntax());
        }
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let run = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            let Some(run) = run else { return Err(self.syntax()) };
            bytes.extend_from_slice(&rest[..run]);
            self.at += run;
            match rest[run] {
                b'"' => {
                    self.at += 1;
                    return Ok(JsonString::from_generalized(bytes));
                }
                b'\\' => self.escape(&mut bytes)?,
                _ => return Err(self.syntax()),
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), LossFault> {
        let plain = match self.text.as_bytes().get(self.at + 1) {
            Some(b'u') => return self.unicode(bytes),
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            _ => return Err(self.syntax()),
        };
        bytes.push(plain);
        self.at += 2;
        Ok(())
    }

    fn unicode(&mut self, bytes: &mut Vec<u8>) -> Result<(), LossFault> {
        let first = self.hex(self.at).ok_or_else(|| self.syntax())?;
        self.at += 6;
        let mut character = char::from_u32(u32::from(first));
        if character.is_none()
            && let Some(second) = self.hex(self.at)
            && let Some(Ok(pair)) = char::decode_utf16([first, second]).next()
        {
            self.at += 6;
            character = Some(pair);
        }
        match character {
            Some(character) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            None => push_half(bytes, first),
        }
        Ok(())
    }

    /// The unit of the `\uXXXX` at `at`, if one is there.
    fn hex(&self, at: usize) -> Option<u16> {
        let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
        let all_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        all_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    const fn syntax(&self) -> LossFault {
        LossFault::Syntax { byte: self.at }
    }

    fn path(&self) -> String {
        let mut path = "value".to_owned();
        for frame in &self.open {
            match frame {
                Frame::Array(items) => path.push_str(&format!("[{}]", items.len())),
                Frame::Object { name, .. } => super::write::push_member(&mut path, &name.to_text_lossy()),
            }
        }
        path
    }
}
