"""Routes of the deployment: the two apps, the console, the API's description, the probes."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from project import health, metrics
from project.missing import Missing, without_slash

handler500 = "project.missing.failed"

admin.site.site_header = admin.site.site_title = "Payments"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="docs"), name="home"),
    path("admin/", admin.site.urls),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    path("api/", include("payments.urls")),
    # problems/<code>/ and api/operations/
    path("", include("idempotency.urls")),
    re_path(r"^api/(?:.*/)?$", Missing.as_view()),
    re_path(r"^api/.*[^/]$", without_slash),
    path("healthz/", health.alive, name="healthz"),
    path("readyz/", health.ready, name="readyz"),
    path("metrics", metrics.show, name="metrics"),
]
