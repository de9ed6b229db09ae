"""Profile a protected request with py-spy: where its CPU goes, by package and by our own functions.

    python -m benchmarks._profile [--variant idempotent] [--case fresh] [--seconds 20]

One process serves requests one after another while py-spy samples it 500 times a second. Only samples that hold
Python's lock count, so waiting for the database is not in them. A package's share is that of the samples whose
innermost frame of any package is its own; a function's is that of the samples below it.
"""

import argparse
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.host.variants import VARIANTS
from benchmarks.rig import figures, servers
from benchmarks.rig.environments import environment
from benchmarks.rig.subject import ROOT, Subject

PACKAGES = ("idempotency", "psycopg", "rest_framework", "django", "benchmarks")
"""The standard library's frames belong to whichever of these called it."""
FUNCTIONS = 30


def main() -> None:
    """Sample and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", default="idempotent")
    parser.add_argument("--case", default="fresh")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    spy = environment("py-spy", ["py-spy==0.4.1"]).with_name("py-spy")
    with servers.postgres() as postgres, servers.store() as store:
        url = servers.new_database(postgres.url, "profiled")
        with Subject(VARIANTS[options.variant], database_url=url, redis_url=store.url) as subject:
            subject.do("prepare")
            subject.do("seed")
            subject.do("send", case=options.case, count=100)
            stacks = sampled(spy, subject, options.case, options.seconds)
    print(page(stacks, options.variant, options.case))


def sampled(spy: Path, subject: Subject, case: str, seconds: float) -> Counter[str]:
    """Return how often each stack was seen."""
    with tempfile.NamedTemporaryFile() as file:
        words = (
            "--rate",
            "500",
            "--format",
            "raw",
            "--output",
            file.name,
            "--full-filenames",
            "--gil",
        )
        recorder = subprocess.Popen(
            [spy, "record", "--pid", str(subject.pid), "--duration", str(int(seconds)), *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            subject.do("send", case=case, count=100)
        recorder.wait()
        stacks: Counter[str] = Counter()
        for line in Path(file.name).read_text().splitlines():
            stack, _, count = line.rpartition(" ")
            stacks[stack] += int(count)
    return stacks


def page(stacks: Counter[str], variant: str, case: str) -> str:
    """Return the shares as Markdown."""
    packages: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    total = 0
    for stack, count in stacks.items():
        frames = stack.split(";")
        if not any("_post" in frame for frame in frames):
            continue
        total += count
        packages[next((name for frame in reversed(frames) if (name := _package(frame))), "?")] += (
            count
        )
        for frame in {_short(frame) for frame in frames if _package(frame) == "idempotency"}:
            functions[frame] += count
    shares = [[name, f"{count / total:.1%}"] for name, count in packages.most_common()]
    ours = [[name, f"{count / total:.1%}"] for name, count in functions.most_common(FUNCTIONS)]
    return (
        f"{total} samples of {variant}, {case}\n\n"
        f"{figures.table(('package', 'share'), shares)}\n"
        f"{figures.table(('function of ours, with what it calls', 'share'), ours)}"
    )


def _package(frame: str) -> str:
    path = frame.partition(" (")[2]
    for name in PACKAGES:
        if f"/site-packages/{name}/" in path or path.startswith(f"{ROOT}/{name}/"):
            return name
    return ""


def _short(frame: str) -> str:
    name, _, path = frame.partition(" (")
    return f"{path.rpartition(':')[0].removeprefix(f'{ROOT}/')} {name}"


if __name__ == "__main__":
    main()
