#!/usr/bin/python3 -I
"""Reads an AI provider's key on standard input and writes it to the assistants' files.

Runs as the login user, at the first start. A clone has the files of its source: the keys in them
go, also if no new key comes. The form of a key identifies its provider; the default is OpenAI.
"""

import contextlib
import json
import os
import re
import shutil
import sys
from pathlib import Path

# The Python of the login user may lack the package, or have another version.
sys.path.insert(0, str(Path(__file__).resolve().with_name("python")))
import tomlkit

# Pattern of the key; provider in opencode; variable of Jupyter AI; section of marimo.
PROVIDERS = [
    ("sk-ant-", "anthropic", "ANTHROPIC_API_KEY", "anthropic"),
    ("sk-or-", "openrouter", "OPENROUTER_API_KEY", "openrouter"),
    ("AIza", "google", "GEMINI_API_KEY", "google"),
    ("", "openai", "OPENAI_API_KEY", "open_ai"),
]

# The parts of a line, as python-dotenv reads them.
BLANK = r"[^\S\r\n]*"
NAME = r"""['"]?\b(?:%s)['"]?""" % "|".join(variable for _, _, variable, _ in PROVIDERS)
# A text in quotes may take several lines, and ends the last one.
QUOTED = rf"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"){BLANK}(?:\#[^\r\n]*)?"""
END = r"(?:\r\n|\r|\n|\Z)"
VARIABLE = re.compile(
    rf"""(?:^|(?<=\r))(?:
        \ufeff?{BLANK}(?:export\b{BLANK})?{NAME}{BLANK}={BLANK}(?:{QUOTED}|[^\r\n]*)
        | {BLANK}\#[^\r\n]*{NAME}{BLANK}=[^\r\n]*
    ){END}""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
# A line with a key in a file of settings that is not valid.
SUSPECT = re.compile(rb"api_key|\bsk-|\bAIza")


def read(path):
    """The content of a file; nothing if there is no file that the user can read."""
    with contextlib.suppress(PermissionError):
        if path.is_file():
            if not os.access(path, os.R_OK):
                path.chmod(0o600)
            return path.read_bytes()
    return b""


def behind(path):
    """The place of a file: that to which a link leads, unless a device or a directory is there."""
    real = Path(os.path.realpath(path))
    return path if real.exists() and not real.is_file() else real


def put(path, content, is_secret):
    """Replaces a file atomically, so that an interrupted start leaves no partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.wharf")
    draft.unlink(missing_ok=True)
    draft.touch(0o600, exist_ok=False)
    draft.write_bytes(content)
    if path.is_file() and not is_secret:
        shutil.copymode(path, draft)
    draft.replace(path)


def write(path, content, is_secret):
    """Replaces the file of an assistant. The user may have a link or a directory in its place."""
    if path.is_dir():
        print(f"ai-key: {path} is a directory, which stays as it is", file=sys.stderr)
        return
    try:
        put(behind(path), content, is_secret)
    except OSError:
        # A link to a place that is not the user's; or the next attempt fails too.
        put(path, content, is_secret)


def remove(path):
    """Removes the file of an assistant, also behind a link."""
    if not path.is_dir():
        with contextlib.suppress(OSError):
            behind(path).unlink()
        path.unlink(missing_ok=True)


def without_keys(values):
    """Removes each `api_key` from settings, and returns how many there were."""
    if isinstance(values, list):
        return sum(map(without_keys, values))
    if not isinstance(values, dict):
        return 0
    own = values.pop("api_key", None) is not None
    return own + sum(map(without_keys, values.values()))


def table(values, name):
    """A table of settings. Another value in its place is of no use to marimo."""
    if not isinstance(values.get(name), dict):
        values[name] = {}
    return values[name]


def settings_with(content, section, key):
    """The settings of marimo with this key, or none, in place of those of the source."""
    text = content.decode("utf-8-sig")
    values = tomlkit.parse(text).unwrap()
    had = without_keys(values)
    if key:
        table(table(values, "ai"), section)["api_key"] = key
    elif not had and "api_key" not in text:
        return content
    # Comments go, since they may have a key. marimo writes its settings in the same way.
    return tomlkit.dumps(values).encode()


def write_settings(path, section, key):
    """Writes the settings of marimo. Settings that are not valid are moved aside, without keys."""
    content = read(path)
    try:
        new = settings_with(content, section, key)
    except Exception:  # Whatever the reason is, marimo cannot read them either.
        lines = (line for line in content.split(b"\n") if not SUSPECT.search(line))
        write(path.with_name(f"{path.name}.not-valid"), b"\n".join(lines), bool(key))
        new = settings_with(b"", section, key)
    if new != content:
        write(path, new, bool(key))


def write_variables(path, variable, key):
    """Writes the variables of Jupyter AI."""
    content = read(path)
    text = VARIABLE.sub("", content.decode(errors="surrogateescape"))
    if key:
        text = f"{variable}={json.dumps(key)}\n{text}"
    new = text.encode(errors="surrogateescape")
    if new == content:
        return
    if new:
        write(path, new, bool(key))
    else:
        remove(path)


def main():
    os.umask(0o077)
    key = sys.stdin.readline().strip()
    _, opencode, variable, section = next(p for p in PROVIDERS if key.startswith(p[0]))
    service = os.environ.get("WHARF_SERVICE")
    home = Path.home()
    # `opencode`, the assistant for terminals.
    terminal = home / ".local/share/opencode/auth.json"
    if key:
        credentials = {opencode: {"type": "api", "key": key}}
        write(terminal, json.dumps(credentials).encode(), True)
    else:
        remove(terminal)
    write_settings(
        home / ".config/marimo/marimo.toml", section, key if service == "marimo" else ""
    )
    write_variables(home / ".env", variable, key if service == "jupyterlab" else "")


main()
