"""Events: written with the change they tell of, signed as Stripe does, delivered until accepted."""
