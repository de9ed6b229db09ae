"""Workers serve nothing."""

urlpatterns: list[object] = []
