"""Shows in Locust's page what a test does before it measures: a row of the statistics, gone when it measures."""

from __future__ import annotations

import json
from collections.abc import Callable

from flask import Response, request
from locust.env import Environment
from locust.stats import StatsEntry


def show_status(environment: Environment, status: Callable[[], str]) -> None:
    """Add a row with the status to what the page asks for, while there is one.

    The files of statistics (CSV, HTML) never have it.
    """
    if environment.web_ui is None or environment.web_ui.app is None:
        return

    @environment.web_ui.app.after_request
    def add_row(response: Response) -> Response:
        text = status()
        if not text or not request.path.endswith("/stats/requests") or not response.is_json:
            return response
        said = json.loads(response.get_data())
        row = StatsEntry(environment.stats, text, "…", use_response_times_cache=False).to_dict()
        said["stats"].insert(0, row)
        return Response(json.dumps(said), response.status_code, mimetype="application/json")
