"""R25: what jitter and the retry budget do to a herd, by the committed simulation."""

from benchmarks import herd


def test_r25_the_committed_result_is_what_the_command_makes() -> None:
    for name, text in herd.results().items():
        assert (herd.RESULTS / name).read_text() == text


def test_r25_jitter_flattens_the_herd_and_the_budget_bounds_it() -> None:
    runs = {
        (jitter, budget): herd.simulate(jitter=jitter, budget=budget)
        for jitter in (False, True)
        for budget in (False, True)
    }
    # In step, nearly all clients come back in the same tenth of a second, also after the outage.
    assert runs[False, False].peak > 0.9 * herd.CLIENTS / herd.BUCKET
    assert runs[False, False].turned_away > herd.CLIENTS
    assert runs[True, False].peak < runs[False, False].peak / 3
    assert runs[True, False].turned_away == 0
    assert runs[True, True].peak < runs[True, False].peak / 3
    for jitter in (False, True):
        run = runs[jitter, True]
        assert run.retries <= 0.2 * run.calls + 10 * herd.PROCESSES
