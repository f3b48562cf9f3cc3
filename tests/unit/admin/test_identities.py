"""Users, groups and roles over the admin API."""

from __future__ import annotations

import httpx

from tests.unit.admin.test_admin import admin, settings

__all__ = ["admin", "settings"]


async def test_life_of_a_user(admin: httpx.AsyncClient) -> None:
    account = (await admin.post("/api/v1/accounts", json={"id": "ours"})).json()["id"]
    place = f"/api/v1/accounts/{account}/iam"
    made = await admin.post(f"{place}/CreateUser", json={"parameters": {"UserName": "ann"}})
    assert (made.status_code, made.json()["User"]["UserName"]) == (200, "ann")
    key = (await admin.post(f"{place}/CreateAccessKey", json={"parameters": {"UserName": "ann"}})).json()["AccessKey"]
    listed = await admin.post(f"{place}/ListAccessKeys", json={"parameters": {"UserName": "ann"}})
    assert [one["AccessKeyId"] for one in listed.json()["AccessKeyMetadata"]] == [key["AccessKeyId"]]
    assert key["SecretAccessKey"] not in listed.text
    again = await admin.post(f"{place}/CreateUser", json={"parameters": {"UserName": "ANN"}})
    assert (again.status_code, again.json()["code"]) == (409, "EntityAlreadyExists")
    assert (await admin.post(f"{place}/Nothing", json={})).status_code == 501
    assert (await admin.post("/api/v1/accounts/nobody/iam/ListUsers", json={})).status_code == 404
    assert "CreateRole" in (await admin.get("/api/v1/iam")).json()


async def test_f75_it_needs_the_token(admin: httpx.AsyncClient) -> None:
    """CVE-2020-11012 of MinIO: the admin API without a secret."""
    for wrong in ("", "Bearer x", "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/iam/aws4_request"):
        given = {"authorization": wrong}
        assert (await admin.get("/api/v1/iam", headers=given)).status_code == 401
        asked = admin.post("/api/v1/accounts/ours/iam/ListUsers", json={}, headers=given)
        assert (await asked).status_code == 401
