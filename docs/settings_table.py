"""Writes the README's table of settings from ``app/settings.py``; a test tells when it is stale."""

from pathlib import Path

from app.settings import Settings

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- settings: written by `make openapi` -->", "<!-- /settings -->"


def table() -> str:
    """One line per setting: name, default, what it is for."""
    prefix = str(Settings.model_config.get("env_prefix", ""))
    lines = ["| variable | default | |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = f"`{field.default}`" if str(field.default) else "–"
        lines.append(f"| `{prefix}{name.upper()}` | {default} | {field.description} |")
    return "\n".join(lines)


def renewed(text: str) -> str:
    """The README's text with the table as it must be."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    README.write_text(renewed(README.read_text()))
