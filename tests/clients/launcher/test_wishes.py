"""What may be said about a launch, and what is answered to what can't be meant."""

from __future__ import annotations

import pytest
from steward_client.launcher import arguments, wishes
from steward_client.launcher.main import main
from steward_client.launcher.wishes import Misuse, Resource


def test_a_command_line_is_read() -> None:
    text = "--learn --deadline 1h30m --resource cpu=50..400/50% --target loss=.3 -- python -u train.py --epochs 3"
    result = arguments.read("steward-run", text.split())
    assert result.command == ("python", "-u", "train.py", "--epochs", "3")
    assert (result.workload, result.learn, result.deadline, result.targets) == ("train", True, 5400.0, (("loss", 0.3),))
    assert result.resources == (Resource("cpu", 50, 400, 50, "%"),)
    assert result.resources[0].levels[:2] == [50, 100]
    assert result.resources[0].nearest(171) == 150


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("--learn", "no command; steward-run [options] -- python train.py"),
        ("--clean", "no command; steward-run [options] -- python train.py"),
        ("--resource cpu=400..50/50% -- ls", "--resource cpu=400..50/50%: the least must be below the most"),
        ("--resource cpu=50-400 -- ls", "NAME=LEAST..MOST/STEP is accepted, for example cpu=50..400/50%"),
        ("--resource cpu=50..400/60% -- ls", "the step must divide the range; 50..410/60 would"),
        ("--resource memory=1024..1048577/1024MiB -- ls", "must divide the range; 1024..1048576/1024 would"),
        (
            "--name slowA -- ls",
            "--name slowA: a lower-case letter or digit, then up to 62 of these and . _ - are accepted",
        ),
        ("--name slowA -- ls", ", such as slowa"),
        ("--workload my/nets -- ls", "--workload my/nets: a lower-case letter or digit, "),
        ("--resource cpu=1..4/1cores -- ls", "cpu is counted in %, not cores"),
        ("--deadline soon -- ls", "--deadline soon: not a duration; 90s, 30m, 1h30m are accepted"),
        ("--deadline 0 -- ls", "a duration above 0 is accepted"),
        ("--pattern epoch -- ls", "it needs a group (?P<iteration>"),
        ("--pattern ( -- ls", "not a valid regular expression"),
        ("--target loss -- ls", "NAME=VALUE is accepted"),
        ("--target loss=-1 -- ls", "a number above 0 is accepted"),
        ("--iterations 0 -- ls", "--iterations 0: a number above 0 is accepted"),
        ("--workload w --resource cpu=50..100/50 -- ls", "a workload has its own; another --name registers another"),
        (
            "python train.py --epochs 3",
            "arguments: --epochs 3; options of the command go after --",
        ),
        ("--iteration 3 -- ls", "--iteration (did you mean --iterations?); options of the command go after --"),
        ("--workload w --learn -- ls", "not allowed with"),
    ],
)
def test_what_cannot_be_meant_is_one_line_with_the_remedy(
    text: str, reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(text.split()) == 2
    line = capsys.readouterr().err
    assert line.startswith("steward-run: ")
    assert line.count("\n") == 1
    assert reported in line


def test_a_service_elsewhere_that_does_not_answer_is_no_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    for url in ("https://127.0.0.1:9", "https://localhost:9"):  # a service of the launcher's own has no TLS
        assert main(["--workload", "w", "--url", url, "--", "ls"]) == 3
        assert capsys.readouterr().err.startswith(f"steward-run: no service answers at {url}: is it running")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python train.py 3", "train"),
        ("torchrun --nproc 2 My_Train.py", "my_train"),
        ("python -m my.module", "module"),
        ("./a.out", "a"),
        ("/usr/bin/--", "command"),
    ],
)
def test_a_workload_is_called_as_its_script(command: str, name: str) -> None:
    assert wishes.default_name(command.split()) == name


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((1e-5, "10 µs"), (0.0123, "12.3 ms"), (59.6, "1 min")),
        *((125.0, "2 min 05 s"), (4320.0, "1 h 12 min"), (259_200, "3 d")),
    ],
)
def test_durations_are_read_and_told(seconds: float, text: str) -> None:
    assert wishes.duration_text(seconds) == text
    assert wishes.duration("1h12m") == 4320
    with pytest.raises(Misuse):
        wishes.duration("1h nonsense")
