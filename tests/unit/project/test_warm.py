import os
import subprocess
import sys


def test_first_request_has_nothing_left_to_import() -> None:
    program = (
        "import sys, project.wsgi; from project import warm; warm.load();"
        "print({'payments.views', 'payments.urls', 'stripe'} - set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "set()"
