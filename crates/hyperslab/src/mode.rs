//! How something is opened.

/// How a store or a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// To read; it must exist.
    Read,
    /// To read and change; it must exist.
    Update,
    /// Anew; an existing store is erased.
    Write,
    /// Anew; it must not exist, except as an empty directory.
    Create,
    /// To read and change where it exists, and anew where not.
    UpdateOrCreate,
}

impl Mode {
    /// The mode with this name: r, r+, w, x or a.
    pub fn from_name(name: &str) -> Option<Mode> {
        Some(match name {
            "r" => Mode::Read,
            "r+" => Mode::Update,
            "w" => Mode::Write,
            "x" => Mode::Create,
            "a" => Mode::UpdateOrCreate,
            _ => return None,
        })
    }

    /// Whether something may be written.
    pub const fn writes(self) -> bool {
        !matches!(self, Mode::Read)
    }

    /// Whether it makes something new.
    pub const fn writes_new(self) -> bool {
        matches!(self, Mode::Write | Mode::Create)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Read => "r",
            Mode::Update => "r+",
            Mode::Write => "w",
            Mode::Create => "x",
            Mode::UpdateOrCreate => "a",
        }
    }
}
