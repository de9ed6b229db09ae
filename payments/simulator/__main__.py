"""`python -m payments.simulator`."""

from payments.simulator.cli import main

main()
