"""The dashboard's link to the documentation: where a service has one, on every page."""

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from app.database.engine import Database
from app.main import create_app
from app.settings import Settings

LINKED = '<li><a href="https://docs.example/steward/">Docs</a></li>'


@pytest.mark.parametrize("page", ["/", "/ui/runs", "/ui/jobs"])
def test_pages_link_to_the_documentation_if_there_is_one(page: str, settings: Settings, database: Database) -> None:
    there = settings.model_copy(update={"documentation_url": "https://docs.example/steward/"})
    assert LINKED in TestClient(create_app(there, database)).get(page).text
    without = TestClient(create_app(settings, database)).get(page)
    assert without.status_code == 200
    assert ">Docs<" not in without.text


@pytest.mark.parametrize("address", ["javascript:alert(1)", "docs.example", "https://a b"])
def test_only_addresses_of_the_web_are_linked(address: str) -> None:
    with pytest.raises(ValidationError, match="documentation_url"):
        Settings(documentation_url=address)
