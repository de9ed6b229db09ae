"""Routes of the app, to be included at the root: a problem's `type` is an address of this site."""

from django.urls import path

from idempotency import views

urlpatterns = [
    # Before the pages of the codes, of which none is called so.
    path("problems/policy/", views.policy_page, name="idempotency-policy"),
    path("problems/<slug:code>/", views.problem_page, name="idempotency-problem"),
    path("api/operations/<uuid:id>/", views.OperationView.as_view(), name="idempotency-operation"),
    path(
        "api/operations/<uuid:id>/cancel/",
        views.OperationCancelView.as_view(),
        name="idempotency-operation-cancel",
    ),
]
