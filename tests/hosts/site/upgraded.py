"""Meet the rows of an earlier release with the code of this one: what was promised then holds now.

python -m tests.hosts.site.upgraded
"""

import django
from django.core.management import call_command


def main() -> None:
    django.setup()
    from idempotency.models import Step
    from tests.hosts.site.drive import defer_done, post
    from tests.hosts.site.fill import MEMBER
    from tests.hosts.site.models import Member
    from tests.support.host import other_side

    member = Member.objects.get(id=MEMBER)
    for path, key in (("/local/", "completed"), ("/charge/", "charged")):
        answer = post(member, path, key)
        assert answer.status_code == 201, answer.content
        assert answer["Idempotent-Replayed"] == "true"
    assert other_side.effects == []
    known = Step.objects.get(key__key="released").downstream_key
    assert post(member, "/charge/", "released").status_code == 201
    assert [key for key, _ in other_side.requests] == [known]
    assert post(member, "/charge/", "unknown").status_code == 409
    promised = post(member, "/letters/", "waiting")
    assert promised.status_code == 202, promised.content
    call_command("idempotency_wake", run=True, verbosity=0)
    defer_done(member, promised)


if __name__ == "__main__":
    main()
    print("all is well")
