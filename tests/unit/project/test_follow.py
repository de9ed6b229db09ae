from pathlib import Path

from project.follow import Follower

LINE = "ERROR one\n"


def test_only_lines_after_the_start_are_news(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    log.write_text("ERROR old\n")
    follower = Follower(log)
    with log.open("a") as file:
        file.write(LINE)
    assert follower.news() == ["ERROR one"]
    assert follower.news() == []


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    follower = Follower(log)
    log.write_text("ERROR o")
    assert follower.news() == []
    with log.open("a") as file:
        file.write("ne\n")
    assert follower.news() == ["ERROR one"]


def test_log_that_was_begun_anew_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    log.write_text("x" * 100)
    follower = Follower(log)
    log.write_text(LINE)
    assert follower.news() == ["ERROR one"]
