"""Checks the licences of what is installed, and of the TypeScript client's packages, against those that are allowed.

``python -m tests.licences`` is part of ``make lint``. It reads what each package states about itself: an SPDX
expression, else its classifiers, else the text of its licence field. Where a package states none of these, or one that
is allowed for this package only, ``REVIEWED`` says what was found and why it may be used.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "clients/typescript/package-lock.json"
ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD",  # as classifiers state it: of two clauses, or of three
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CNRI-Python",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",  # binds who changes its files; none are changed or copied here
    "PSF-2.0",
    "Python-2.0",
    "Unlicense",
    "Zlib",
}
SPDX = {  # classifiers and texts, in lower case
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache 2.0 license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd license": "BSD",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}
NO_LICENCE = {"License :: OSI Approved", "License :: DFSG approved"}


class Reviewed(NamedTuple):
    """A decision on one package: what its metadata states (None: nothing), and why it may be used."""

    stated: str | None
    why: str


_CUDA = "NVIDIA's licence: CUDA libraries that published builds of torch and xgboost bring, which applications may use"
_CUDA_STATED = {
    None: ["cuda-toolkit"],
    "LicenseRef-NVIDIA-Proprietary": [
        "nvidia-cublas", "nvidia-cuda-runtime", "nvidia-cudnn-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu13",
        "nvidia-nvjitlink", "nvidia-nvshmem-cu13",
    ],
    "NVIDIA Proprietary Software": ["nvidia-cusparselt-cu13"],
    "Other/Proprietary License": [
        "nvidia-cuda-cupti", "nvidia-cuda-nvrtc", "nvidia-cufft", "nvidia-cufile", "nvidia-curand", "nvidia-cusolver",
        "nvidia-cusparse", "nvidia-nvtx",
    ],
}  # fmt: skip
REVIEWED = {
    **{name: Reviewed(stated, _CUDA) for stated, names in _CUDA_STATED.items() for name in names},
    "axe-playwright-python": Reviewed(None, "MIT: LICENSE in its distribution"),
    "kubernetes-validate": Reviewed("Apache", "Apache-2.0: LICENSE in its distribution"),
    "namex": Reviewed(None, "Apache-2.0: LICENSE in its distribution"),
    "promql-parser": Reviewed(None, "MIT: LICENSE in its distribution"),
    "psycopg": Reviewed("LGPL-3.0-only", "imported as it is published, neither changed nor copied"),
    "psycopg-binary": Reviewed("LGPL-3.0-only", "imported as it is published, neither changed nor copied"),
}


class Package(NamedTuple):
    """A package and the licence that it states, as an SPDX expression if it is known as one; None: it states none."""

    name: str
    licence: str | None


def allowed(expression: str) -> bool:
    """Whether an SPDX expression permits the use: one side of an OR, all parts of an AND.

    AND binds more closely than OR; an exception belongs to the licence before it.
    """
    inner = re.compile(r"\(([^()]*)\)")
    while match := inner.search(expression):  # innermost first; what it comes to takes its place
        verdict = "MIT" if allowed(match[1]) else "refused"
        expression = expression[: match.start()] + verdict + expression[match.end() :]
    return any(
        all(part.strip() in ALLOWED for part in re.split(r"\s+AND\s+", side, flags=re.IGNORECASE))
        for side in re.split(r"\s+OR\s+", expression, flags=re.IGNORECASE)
    )


def installed(distributions: Iterable[Distribution]) -> Iterator[Package]:
    """Distributions with the licences that they state."""
    for one in distributions:
        result = one.metadata
        classifiers = [text for text in result.get_all("Classifier") or () if text.startswith("License ::")]
        classified = [text.rpartition(" :: ")[2] for text in classifiers if text not in NO_LICENCE]
        text = result["License"].strip() if "License" in result else ""
        if "License-Expression" in result:
            licence: str | None = result["License-Expression"]
        elif classified:
            licence = " AND ".join(SPDX.get(name.lower(), name) for name in classified)
        else:
            licence = SPDX.get(text.lower(), text) if text and text != "UNKNOWN" else None
        yield Package(re.sub(r"[-_.]+", "-", result["Name"]).lower(), licence)


def locked(lock: Path) -> Iterator[Package]:
    """The packages of a lock file of npm, but for the one whose file it is."""
    for path, one in json.loads(lock.read_text())["packages"].items():
        if path:
            yield Package(f"npm:{path.rpartition('node_modules/')[2]}", one.get("license"))


def refused(packages: Iterable[Package]) -> list[str]:
    """One line for each package that may not be used as far as is known: its name, its licence, and what to do."""
    lines = set()
    for name, licence in packages:
        if licence is not None and allowed(licence):
            continue
        review = REVIEWED.get(name)
        if review is not None and review.stated == licence:
            continue
        stated = "states no licence" if licence is None else f"is under {licence[:80]!r}, which is not allowed"
        if review is not None:
            stated += f" (it was reviewed when it stated {review.stated!r})"
        lines.add(f"{name} {stated}; replace it, or review its licence text and add it to tests/licences.py")
    return sorted(lines)


def main() -> int:
    """Print what is refused; 1 if anything is."""
    packages = [*installed(distributions()), *locked(LOCK)]
    lines = refused(packages)
    sys.stdout.write("\n".join([*lines, f"licences of {len(packages)} packages checked, {len(lines)} refused", ""]))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
