"""Regenerates ``openapi.json`` at the root, the clients' generated cores, and the messages that KEDA sends.

``make openapi`` runs it. Tests use its functions to tell when any is stale. Without npm, TypeScript's is left.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SNAPSHOT = HERE.parents[1] / "openapi.json"
GENERATED = HERE / "steward_client" / "generated"
TYPESCRIPT = HERE.parent / "typescript"
MESSAGES = "steward_client/scaling/keda/externalscaler.proto"


def snapshot() -> str:
    """The OpenAPI schema as the application tells it now."""
    from app.main import create_app
    from app.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        schema = create_app(Settings(data_dir=Path(folder))).openapi()
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def generate(schema: Path, target: Path) -> str:
    """Generate the client's core from a schema into ``target``; what the generator warned of."""
    program = shutil.which("openapi-python-client", path=_path()) or "openapi-python-client"
    options = ["--path", str(schema), "--meta", "none", "--output-path", str(target), "--overwrite"]
    command = [program, "generate", *options, "--config", str(HERE / "generator.yml")]
    environment = {**os.environ, "PATH": _path(), "NO_COLOR": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    _send_files_as_what_they_are(target)
    _take_clients_without_a_key(target)
    _import_models_when_asked(target)
    return done.stdout + done.stderr


def _send_files_as_what_they_are(target: Path) -> None:
    """Have a file tell its own media type: the generator takes the last one that an operation knows for all files."""
    for path in (target / "api").rglob("*.py"):
        text = path.read_text()
        path.write_text(
            re.sub(r'(content"] = body\.payload\s+headers\["Content-Type"] = )"', r'\1body.mime_type or "', text)
        )


def _take_clients_without_a_key(target: Path) -> None:
    """Have operations take a client without a key, too: a service without keys asks for none."""
    for path in (target / "api").rglob("*.py"):
        text = path.read_text()
        path.write_text(text.replace("client: AuthenticatedClient,", "client: AuthenticatedClient | Client,"))


LAZY = """
_MODULES = {{{modules}}}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    found = globals()[name] = getattr(import_module("." + _MODULES[name], __name__), name)
    return found
"""


def _import_models_when_asked(target: Path) -> None:
    """Have a model imported when it is asked for, not all with the first: that takes most of a client's start."""
    path = target / "models" / "__init__.py"
    text = path.read_text()
    head, _, names = text.partition("__all__")
    docstring, _, imports = head.partition("\n\n")
    modules = ", ".join(
        f'"{name}": "{module}"' for module, name in re.findall(r"from \.(\w+) import \(?\s*(\w+)", imports)
    )
    indented = re.sub(r"^(?=.)", "    ", imports.strip(), flags=re.MULTILINE)
    first = "from importlib import import_module\nfrom typing import TYPE_CHECKING, Any\n\nif TYPE_CHECKING:\n"
    path.write_text(f"{docstring}\n\n{first}{indented}\n{LAZY.format(modules=modules)}\n__all__{names}")
    subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=120", "-q", str(path)], check=True
    )


def generate_typescript(folder: Path = TYPESCRIPT) -> None:
    """Generate ``src/schema.ts`` of the TypeScript client in a folder beside the schema's, as its lock file has it."""
    if not (folder / "node_modules").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, check=True, capture_output=True)
    options = ["--output", "src/schema.ts", "--default-non-nullable=false"]
    subprocess.run(["npx", "openapi-typescript", str(SNAPSHOT), *options], cwd=folder, check=True, capture_output=True)


def _path() -> str:
    """Programs beside this interpreter first: the generator, and the formatter that it calls."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def generate_messages(target: Path, *more: str) -> None:
    """Generate the messages of the protocol with external scalers into ``target``; ``more``: kinds of output."""
    from grpc_tools import protoc

    outputs = [f"--{kind}={target}" for kind in ("python_out", "pyi_out", *more)]
    if protoc.main(["", f"-I{HERE}", *outputs, MESSAGES]) != 0:
        raise RuntimeError(f"{MESSAGES} can't be compiled")


def main() -> None:
    """Write everything that is generated."""
    SNAPSHOT.write_text(snapshot())
    generate(SNAPSHOT, GENERATED)
    generate_messages(HERE)
    if shutil.which("npm"):
        generate_typescript()


if __name__ == "__main__":
    main()
