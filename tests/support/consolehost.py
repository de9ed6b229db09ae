"""The test host with the console on top: what staff do there meets real keys and another side that is told what to do."""

from django.contrib import admin
from django.urls import path

from tests.support import host

urlpatterns = [path("admin/", admin.site.urls), *host.urlpatterns]
