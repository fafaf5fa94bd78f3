#!/usr/bin/env python3
"""Reads an AI provider's key on standard input and writes it to the assistants' files.

Runs as the login user, in the home directory. The form of a key identifies
its provider; the default is OpenAI.
"""

import json
import os
import sys
from pathlib import Path

# Pattern of the key; provider in opencode; variable of Jupyter AI; section of marimo.
PROVIDERS = [
    ("sk-ant-", "anthropic", "ANTHROPIC_API_KEY", "anthropic"),
    ("sk-or-", "openrouter", "OPENROUTER_API_KEY", "openrouter"),
    ("AIza", "google", "GEMINI_API_KEY", "google"),
    ("", "openai", "OPENAI_API_KEY", "open_ai"),
]


def write(path, text):
    """Replaces a file atomically, so that an interrupted start leaves no partial file."""
    target = Path.home() / path
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(target.name + ".new")
    draft.write_text(text, errors="surrogateescape")
    draft.replace(target)


def read(path):
    """A file that a clone may have from the user of its source; empty if it is not there."""
    own = Path.home() / path
    return own.read_text(errors="surrogateescape") if own.is_file() else ""


def with_line(settings, section, line):
    """The settings with this first line of a section."""
    lines = settings.splitlines()
    if section not in lines:
        lines.append(section)
    lines.insert(lines.index(section) + 1, line)
    return "\n".join(lines) + "\n"


def main():
    os.umask(0o077)
    key = sys.stdin.readline().strip()
    _, opencode, variable, marimo = next(p for p in PROVIDERS if key.startswith(p[0]))
    quoted = json.dumps(key)
    # `opencode`, the assistant for terminals.
    credentials = {opencode: {"type": "api", "key": key}}
    write(".local/share/opencode/auth.json", json.dumps(credentials))
    service = os.environ.get("WHARF_SERVICE")
    if service == "marimo":
        path = ".config/marimo/marimo.toml"
        write(path, with_line(read(path), f"[ai.{marimo}]", f"api_key = {quoted}"))
    elif service == "jupyterlab":
        write(".env", f"{variable}={quoted}\n{read('.env')}")


main()
