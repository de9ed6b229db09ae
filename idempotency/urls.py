"""Routes of the app, to be included at the root: a problem's `type` is an address of this site."""

from django.urls import path

from idempotency import views

urlpatterns = [
    path("problems/<slug:code>/", views.problem_page, name="idempotency-problem"),
    path("api/operations/<uuid:id>/", views.OperationView.as_view(), name="idempotency-operation"),
    path(
        "api/operations/<uuid:id>/cancel/",
        views.OperationCancelView.as_view(),
        name="idempotency-operation-cancel",
    ),
]
